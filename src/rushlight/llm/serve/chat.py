"""Chat completions: POST /v1/chat/completions."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.llm.reply import Piece, Statistics, Stream, Token
from rushlight.llm.runner import Runner
from rushlight.llm.serve.answers import FINISH
from rushlight.llm.serve.call import TextCall
from rushlight.llm.serve.errors import bad
from rushlight.llm.serve.fields import Fields
from rushlight.llm.serve.logprobs import chat_logprobs
from rushlight.llm.serve.messages import read_messages
from rushlight.llm.serve.sampling import read_structure
from rushlight.llm.serve.settings import Settings
from rushlight.llm.template import ReplyParser, ReplyPart

_NAMES = ("chatcmpl", "chat.completion", "chat.completion.chunk")
_THINK = "<think>"
# What a template is given by other fields, or by the runner.
_NO_VARIABLES = {"self", "messages", "tools", "add_generation_prompt"}
# Fields that are variables of chat templates.
_VARIABLES = {"enable_thinking": bool, "reasoning_effort": str}


@dataclass
class _Choice:
    """One reply while it is generated."""

    content: str = ""
    reasoning: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    finish: str | None = None


class ChatCall(TextCall):
    """A request for chat completions; the arguments are those of `TextCall`."""

    def __init__(self, runner: Runner, fields: Fields, settings: Settings) -> None:
        super().__init__(runner, fields, settings, _NAMES)
        self._messages = read_messages(fields)
        self._read_logprobs(fields)
        self._tools = read_structure(fields, "tools", list)
        choice = fields.take("tool_choice")
        self._takes_calls = bool(self._tools) and choice != "none"
        self._structure = {
            "response_format": read_structure(fields, "response_format", dict),
            "tool_choice": choice,
            "parallel_tool_calls": fields.read("parallel_tool_calls", bool),
        }
        self._variables = fields.read("chat_template_kwargs", dict, {})
        for name in _NO_VARIABLES & set(self._variables):
            raise bad("chat_template_kwargs", f"has {name!r}, which is no variable: leave it out")
        for name, kind in _VARIABLES.items():
            value = fields.read(name, kind)
            if value is not None:
                self._variables = {**self._variables, name: value}
        fields.finish()
        self._choices = [_Choice() for _ in range(self._options["n"])]
        self._parsers: list[ReplyParser] = []

    def _read_logprobs(self, fields: Fields) -> None:
        asked = fields.read("logprobs", bool, False)
        top = fields.read("top_logprobs", int)
        if top is not None and not asked:
            raise bad("top_logprobs", 'is for log probabilities: add "logprobs": true')
        self._tells_logprobs = asked
        if asked:
            self._options["logprobs"] = top or True

    def start(self, is_cancelled: Callable[[], bool]) -> Sequence[Stream]:
        """Start the replies.

        Args:
            is_cancelled: whether nobody waits for them any more.

        Raises:
            RunError: the model refuses the conversation or an option.
        """
        runner, options = self._runner, self._options
        variables = {"tools": self._tools, **self._variables}
        tokens = runner.encode_chat(self._messages, **variables)
        if options.get("context_full") == "shift":
            options.setdefault("keep", runner.system_tokens(self._messages, tokens, variables))
        options.update(self._structure)
        reasoning = runner.reasoning(tokens)
        runner.structured.read(options, self._tools, lambda: reasoning)
        if not runner.decode(runner.encode(_THINK)):  # a special token
            options["special"] = True
        self._answers.prompt_tokens = len(tokens)
        self._parsers = [
            ReplyParser(
                runner.reply_format,
                takes_calls=self._takes_calls,
                in_reasoning=reasoning == "open",
            )
            for _ in self._choices
        ]
        return [runner.stream(tokens, **options)]

    def opening(self) -> list[dict[str, Any]]:
        """An event for each reply, that says whose it is."""
        delta = {"role": "assistant", "content": ""}
        return [self._event(i, delta, [], None) for i in range(len(self._choices))]

    def add(self, stream: int, piece: Piece) -> dict[str, Any] | None:
        """Take a piece; the event that tells it, if it has news.

        Args:
            stream: 0; there is one.
            piece: what was generated.
        """
        choice, parser = self._choices[piece.choice], self._parsers[piece.choice]
        part = parser.push(piece.text)
        if piece.finish:
            rest = parser.finish()
            part = ReplyPart(
                part.content + rest.content,
                part.reasoning + rest.reasoning,
                part.tool_calls + rest.tool_calls,
            )
        calls = [
            {
                "id": call.id or f"call_{secrets.token_hex(12)}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in part.tool_calls
        ]
        delta: dict[str, Any] = {}
        if part.content:
            delta["content"] = part.content
        if part.reasoning:
            delta["reasoning_content"] = part.reasoning
        if calls:
            first = len(choice.calls)
            delta["tool_calls"] = [{"index": first + i, **call} for i, call in enumerate(calls)]
        choice.content += part.content
        choice.reasoning += part.reasoning
        choice.calls += calls
        choice.tokens += piece.tokens
        self._answers.output_tokens += len(piece.tokens)
        choice.finish = FINISH[piece.finish]
        if choice.finish == "stop" and choice.calls:
            choice.finish = "tool_calls"
        if not self.streaming.events:
            return None
        if not delta and choice.finish is None and not (self._tells_logprobs and piece.tokens):
            return None
        return self._event(piece.choice, delta, piece.tokens, choice.finish)

    def _event(
        self, index: int, delta: dict[str, Any], tokens: Sequence[Token], finish: str | None
    ) -> dict[str, Any]:
        choice = {
            "index": index,
            "delta": delta,
            "logprobs": self._logprobs(tokens),
            "finish_reason": finish,
        }
        return self._answers.event(choice)

    def _logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        if not self._tells_logprobs:
            return None
        return {"content": chat_logprobs(self._runner, tokens), "refusal": None}

    def finished(self, statistics: Sequence[Statistics]) -> dict[str, Any]:
        """The whole answer.

        Args:
            statistics: of the stream.
        """
        choices = [self._told(i, choice) for i, choice in enumerate(self._choices)]
        return self._answers.whole(choices, statistics)

    def _told(self, index: int, choice: _Choice) -> dict[str, Any]:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": choice.content if choice.content or not choice.calls else None,
            "refusal": None,
        }
        if choice.reasoning:
            message["reasoning_content"] = choice.reasoning
        if choice.calls:
            message["tool_calls"] = choice.calls
        return {
            "index": index,
            "message": message,
            "logprobs": self._logprobs(choice.tokens),
            "finish_reason": choice.finish,
        }
