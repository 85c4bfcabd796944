"""What a generation gives: pieces while it goes on, and a reply at its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rushlight import _core
from rushlight.runtime.failures import run_errors


@dataclass(frozen=True)
class Token:
    """A generated token.

    Attributes:
        id: its number.
        logprob: its log probability in the model's own distribution; 0 unless asked for.
        top: the most probable tokens with their log probabilities, as many as were asked for.
    """

    id: int
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Piece:
    """What was generated since the piece before.

    Attributes:
        text: whole characters; "" for programs without a tokenizer.
        tokens: the tokens. A token may come before its text.
        choice: which of the `n` texts it belongs to.
        finish: why the text ended: "stop", "length", "context" or "cancelled"; "" if it goes on.
    """

    text: str
    tokens: tuple[Token, ...]
    choice: int
    finish: str


@dataclass
class Choice:
    """One generated text.

    Attributes:
        text: without stop strings and, unless asked for, without special tokens.
        tokens: its tokens.
        finish: as in `Piece`.
        stopped_by: the stop string that ended it; "" if something else did.
    """

    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    finish: str = ""
    stopped_by: str = ""

    @property
    def token_ids(self) -> list[int]:
        """The numbers of its tokens."""
        return [token.id for token in self.tokens]


@dataclass(frozen=True)
class Statistics:
    """Figures of a generation.

    Attributes:
        prompt_tokens: tokens of the prompt, with what the session had before.
        reused_tokens: those whose keys and values were in the cache.
        output_tokens: tokens of all texts.
        guessed_tokens, accepted_tokens: what speculation proposed, and what of it was right.
        recomputed_tokens: tokens computed again, after a shift or because pages were short.
        steps: how many steps of the model had tokens of this generation.
        waited: seconds in the queue.
        first_token: seconds from the call to the first token.
        total: seconds from the call to the end.
        prefill_rate: tokens of the prompt a second, those that were not reused.
        decode_rate: output tokens a second after the first.
    """

    prompt_tokens: int
    reused_tokens: int
    output_tokens: int
    guessed_tokens: int
    accepted_tokens: int
    recomputed_tokens: int
    steps: int
    waited: float
    first_token: float
    total: float
    prefill_rate: float
    decode_rate: float


def _seconds(begin: int, end: int) -> float:
    return max(0, end - begin) / 1e9 if begin and end else 0.0


def _statistics(figures: dict[str, int]) -> Statistics:
    times = {name: figures.pop(name) for name in list(figures) if name.endswith("_ns")}
    submitted, first = times["submitted_ns"], times["first_token_ns"]
    prefill = _seconds(times["started_ns"], first)
    decode = _seconds(first, times["finished_ns"])
    computed = max(0, figures["prompt_tokens"] - figures["reused_tokens"])
    return Statistics(
        **figures,
        waited=_seconds(submitted, times["started_ns"]),
        first_token=_seconds(submitted, first),
        total=_seconds(submitted, times["finished_ns"]),
        prefill_rate=computed / prefill if prefill else 0.0,
        decode_rate=max(0, figures["output_tokens"] - 1) / decode if decode else 0.0,
    )


class Stream:
    """A generation that goes on: iterate over its pieces.

    It is computed while somebody iterates, on the thread that does so. Closing it, or leaving a
    `with` block, cancels what is left.
    """

    def __init__(self, core: _core.LlmGeneration, choices: int) -> None:
        self._core: _core.LlmGeneration | None = core
        self._choices = [Choice() for _ in range(choices)]
        self._last: Statistics | None = None

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        """The next piece.

        Raises:
            RunError: the model failed.
        """
        core = self._core  # another thread may close this one
        if core is None:
            raise StopIteration
        with run_errors():
            news = core.next()
        if news is None:
            self.close()
            raise StopIteration
        index, tokens, text, finish = news
        piece = Piece(text, tuple(Token(i, p, tuple(top)) for i, p, top in tokens), index, finish)
        choice = self._choices[index]
        choice.text += text
        choice.tokens += piece.tokens
        choice.finish = finish
        if finish:
            choice.stopped_by = core.stopped_by(index)
        return piece

    def cancel(self) -> None:
        """End it at the next token; from any thread. The iteration goes on to its end."""
        core = self._core
        if core is not None:
            core.cancel()

    def close(self) -> None:
        """Cancel what is left and give its memory back."""
        core = self._core
        if core is not None:
            self._last = _statistics(core.statistics())
            self._core = None

    @property
    def statistics(self) -> Statistics:
        """Figures up to now."""
        core = self._core  # another thread may close this one
        if core is None:
            assert self._last is not None
            return self._last
        return _statistics(core.statistics())

    def reply(self) -> Reply:
        """Read what is left; returns the whole reply.

        Raises:
            RunError: the model failed.
        """
        for _ in self:
            pass
        return Reply(self._choices, self.statistics)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Reply:
    """The texts of a generation.

    Attributes:
        choices: `n` of them.
        statistics: its figures.
    """

    choices: list[Choice]
    statistics: Statistics

    @property
    def text(self) -> str:
        """The first text."""
        return self.choices[0].text

    @property
    def tokens(self) -> list[int]:
        """The token ids of the first text."""
        return self.choices[0].token_ids

    @property
    def finish(self) -> str:
        """Why the first text ended."""
        return self.choices[0].finish

    def __str__(self) -> str:
        return self.text


def finished(core: _core.LlmGeneration, choices: int, on_piece: Any) -> Reply:
    """The reply of a generation that is read to its end; `on_piece` is called with each piece."""
    with Stream(core, choices) as stream:
        for piece in stream:
            if on_piece is not None:
                on_piece(piece)
        return stream.reply()
