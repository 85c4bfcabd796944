"""Text completions: POST /v1/completions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.llm.reply import Piece, Statistics, Stream, Token
from rushlight.llm.runner import Runner
from rushlight.llm.serve.answers import FINISH, Answers
from rushlight.llm.serve.errors import bad
from rushlight.llm.serve.fields import Fields, shown
from rushlight.llm.serve.logprobs import text_logprobs
from rushlight.llm.serve.models import read_model
from rushlight.llm.serve.sampling import (
    read_sampling,
    read_streaming,
    read_structure,
)
from rushlight.llm.serve.settings import Settings

_MOST_TEXTS = 128


def read_texts(fields: Fields, name: str) -> list[Any]:
    """Texts, or lists of tokens: one, or an array of them.

    Args:
        fields: of the request.
        name: the field.

    Raises:
        ApiError: it is something else.
    """
    given = fields.take(name)
    if isinstance(given, str) or _is_tokens(given):
        return [given]
    if not isinstance(given, list) or not given:
        raise bad(name, f"is {shown(given)}: give a text, an array of texts, or of tokens")
    for i, text in enumerate(given):
        if not isinstance(text, str) and not _is_tokens(text):
            raise bad(f"{name}[{i}]", f"is {shown(text)}: give a text, or an array of tokens")
    if len({type(text) for text in given}) > 1:
        raise bad(name, "has texts and tokens: give one or the other")
    if len(given) > _MOST_TEXTS:
        raise bad(name, f"has {len(given)} texts: at most {_MOST_TEXTS} are taken")
    return given


def _is_tokens(value: Any) -> bool:
    is_list = isinstance(value, list) and len(value) > 0
    return is_list and all(type(token) is int for token in value)


@dataclass
class _Choice:
    """One text while it is generated."""

    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    offset: int = 0  # characters of the texts of its tokens
    finish: str | None = None


class CompletionCall:
    """A request for text completions.

    Args:
        runner: the model.
        fields: of the request.
        settings: have the ids of models.

    Raises:
        ApiError: a field is not as it must be.
    """

    def __init__(self, runner: Runner, fields: Fields, settings: Settings) -> None:
        self._runner = runner
        asked = read_model(fields, settings)
        self._prompts = read_texts(fields, "prompt")
        self.streaming = read_streaming(fields)
        self._options = read_sampling(fields)
        if asked.adapter is not None:
            self._options["adapter"] = asked.adapter
        self._options.setdefault("max_tokens", 16)  # as the API says
        echo = fields.read("echo", bool, False)
        logprobs = fields.read("logprobs", int)
        if echo and logprobs is not None:
            raise bad("logprobs", "is not for 'echo': prompts have none; leave one out")
        if logprobs is not None:
            self._options["logprobs"] = logprobs or True
        self._options["echo"] = echo
        self._tells_logprobs = logprobs is not None
        self._options["response_format"] = read_structure(fields, "response_format", dict)
        fields.only("best_of", (self._options["n"],), "write 'n'")
        fields.finish()
        self._n = self._options["n"]
        if len(self._prompts) * self._n > _MOST_TEXTS:
            raise bad("n", f"times the number of prompts is more than {_MOST_TEXTS}: ask for fewer")
        self._choices = [_Choice() for _ in range(len(self._prompts) * self._n)]
        names = ("text_completion", "text_completion")
        self._answers = Answers("cmpl", *names, asked.name, self.streaming)

    def start(self) -> Sequence[Stream]:
        """Start the texts.

        Raises:
            RunError: the model refuses a prompt or an option.
        """
        prompts = [
            self._runner.encode(prompt) if isinstance(prompt, str) else prompt
            for prompt in self._prompts
        ]
        self._answers.prompt_tokens = sum(len(prompt) for prompt in prompts)
        return [self._runner.stream(prompt, **self._options) for prompt in prompts]

    def opening(self) -> list[dict[str, Any]]:
        """No event."""
        return []

    def add(self, stream: int, piece: Piece) -> dict[str, Any] | None:
        """Take a piece; the event that tells it, if it has news.

        Args:
            stream: the number of the prompt.
            piece: what was generated.
        """
        index = stream * self._n + piece.choice
        choice = self._choices[index]
        choice.text += piece.text
        choice.tokens += piece.tokens
        self._answers.output_tokens += len(piece.tokens)
        choice.finish = FINISH[piece.finish]
        if not self.streaming.events:
            return None
        if not (piece.text or piece.finish or (self._tells_logprobs and piece.tokens)):
            return None
        return self._answers.event(self._told(index, piece.text, piece.tokens))

    def _told(self, index: int, text: str, tokens: Sequence[Token]) -> dict[str, Any]:
        choice, logprobs = self._choices[index], None
        if self._tells_logprobs:
            logprobs = text_logprobs(self._runner, tokens, choice.offset)
            choice.offset += sum(len(token) for token in logprobs["tokens"])
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": choice.finish}

    def finished(self, statistics: Sequence[Statistics]) -> dict[str, Any]:
        """The whole answer.

        Args:
            statistics: of the streams.
        """
        choices = [
            self._told(i, choice.text, choice.tokens) for i, choice in enumerate(self._choices)
        ]
        return self._answers.whole(choices, statistics)

    def usage(self, statistics: Sequence[Statistics]) -> dict[str, Any]:
        """The last event, which counts tokens.

        Args:
            statistics: of the streams.
        """
        return self._answers.last_event(statistics)
