"""Text completions: POST /v1/completions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.llm.reply import Piece, Statistics, Stream, Token
from rushlight.llm.runner import Runner
from rushlight.llm.serve.answers import FINISH
from rushlight.llm.serve.call import TextCall
from rushlight.llm.serve.errors import bad
from rushlight.llm.serve.fields import Fields, shown
from rushlight.llm.serve.jobs import ending
from rushlight.llm.serve.logprobs import text_logprobs
from rushlight.llm.serve.sampling import read_structure
from rushlight.llm.serve.settings import Settings

_NAMES = ("cmpl", "text_completion", "text_completion")
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


class _Echo(Stream):
    """The stream of a prompt after which nothing is to be generated."""

    def __init__(self, text: str, prompt_tokens: int, choices: int) -> None:
        self._core, self._choices = None, []
        self._last = Statistics(prompt_tokens, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self._pieces = iter([Piece(text, (), choice, "length") for choice in range(choices)])

    def __next__(self) -> Piece:
        return next(self._pieces)


@dataclass
class _Choice:
    """One text while it is generated."""

    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    offset: int = 0  # characters of the texts of its tokens
    is_echoed: bool = False  # the log probabilities of its prompt were told
    finish: str | None = None


class CompletionCall(TextCall):
    """A request for text completions; the arguments are those of `TextCall`."""

    def __init__(self, runner: Runner, fields: Fields, settings: Settings) -> None:
        super().__init__(runner, fields, settings, _NAMES)
        self._prompts = read_texts(fields, "prompt")
        self._options.setdefault("max_tokens", 16)  # as the API says
        self._logprobs = fields.read("logprobs", int)
        if self._logprobs is not None:
            self._options["logprobs"] = self._logprobs or True
        self._options["echo"] = fields.read("echo", bool, False)
        self._is_echo = self._options["max_tokens"] == 0
        if self._is_echo:
            if not self._options["echo"]:
                raise bad("max_tokens", 'is 0, which is for a prompt alone: add "echo": true')
            self._options["max_tokens"] = 1
        # Of each prompt: its tokens, if their log probabilities are told, too.
        self._echoed: list[list[Token]] = []
        self._options["response_format"] = read_structure(fields, "response_format", dict)
        fields.only("best_of", (self._options["n"],), "write 'n'")
        fields.finish()
        self._n = self._options["n"]
        if len(self._prompts) * self._n > _MOST_TEXTS:
            raise bad("n", f"times the number of prompts is more than {_MOST_TEXTS}: ask for fewer")
        self._choices = [_Choice() for _ in range(len(self._prompts) * self._n)]

    def start(self, is_cancelled: Callable[[], bool]) -> Sequence[Stream]:
        """Start the texts.

        Args:
            is_cancelled: whether nobody waits for them any more.

        Raises:
            RunError: the model refuses a prompt or an option.
            ApiError: it was cancelled.
        """
        prompts = [
            self._runner.encode(prompt) if isinstance(prompt, str) else prompt
            for prompt in self._prompts
        ]
        self._answers.prompt_tokens = sum(len(prompt) for prompt in prompts)
        streams = [self._runner.stream(prompt, **self._options) for prompt in prompts]
        if self._is_echo:  # the options were checked, and nothing is computed yet
            for stream in streams:
                stream.close()
            streams = [
                _Echo(self._runner.decode(prompt), len(prompt), self._n) for prompt in prompts
            ]
        if not self._options["echo"] or self._logprobs is None:
            return streams
        try:
            for prompt in prompts:
                if is_cancelled():
                    raise ending()
                self._echoed.append(self._scored(prompt, self._logprobs))
        except BaseException:
            for stream in streams:
                stream.close()
            raise
        return streams

    def _scored(self, prompt: list[int], top: int) -> list[Token]:
        """The tokens of a prompt with their log probabilities; the first has none."""
        rest: list[Token] = []
        if len(prompt) > 1:
            adapter = self._options.get("adapter")
            rest = self._runner.logprobs(prompt, top=top, adapter=adapter)
        return [Token(prompt[0], math.nan), *rest]

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
        tells_logprobs = self._logprobs is not None and piece.tokens
        if not (piece.text or piece.finish or tells_logprobs):
            return None
        return self._answers.event(self._told(index, piece.text, piece.tokens))

    def _told(self, index: int, text: str, tokens: Sequence[Token]) -> dict[str, Any]:
        choice, logprobs = self._choices[index], None
        if self._logprobs is not None:
            if self._echoed and not choice.is_echoed:
                tokens = [*self._echoed[index // self._n], *tokens]
                choice.is_echoed = True
            logprobs, choice.offset = text_logprobs(self._runner, tokens, choice.offset)
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
