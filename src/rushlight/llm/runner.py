"""Language models that run: `Runner` and `Session`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import _core
from rushlight.llm.options import read_options, read_tokens
from rushlight.llm.reply import Piece, Reply, Stream, finished, run_errors

OnPiece = Callable[[Piece], object]


class Runner:
    """A language model that `rushlight.llm.load` loaded. Many threads may use it.

    Attributes:
        vocabulary: how many tokens there are.
        context: the greatest number of tokens of a text.
        cache_type: what keys and values are stored in.
        cache_limit: the most bytes that the cache takes.
    """

    def __init__(self, core: _core.LlmRunner) -> None:
        self._core = core
        facts = core.facts()
        self.vocabulary: int = facts["vocabulary"]
        self.context: int = facts["context"]
        self.cache_type: str = facts["cache_type"]
        self.cache_limit: int = facts["cache_limit"]

    def generate_tokens(
        self, prompt: Any, *, on_piece: OnPiece | None = None, **options: Any
    ) -> Reply:
        """Generate texts for a prompt of token ids.

        Args:
            prompt: a list, an array or a tensor.
            on_piece: called with each `Piece` as it is made.
            options: docs/llm/runner.md lists them.

        Raises:
            RunError: an option or the prompt is refused, or the model failed.
        """
        core, choices = self._start(self._core, prompt, options)
        return finished(core, choices, on_piece)

    def stream_tokens(self, prompt: Any, **options: Any) -> Stream:
        """Start `generate_tokens`; iterate over the result.

        Raises:
            RunError: an option or the prompt is refused.
        """
        return Stream(*self._start(self._core, prompt, options))

    def session(self) -> Session:
        """A text that is kept: generations are added to it."""
        return Session(self, self._core.session())

    @property
    def cache_bytes(self) -> int:
        """Bytes that the cache takes now."""
        return self._core.cache_bytes()

    def _start(
        self, where: _core.LlmRunner | _core.LlmSession, prompt: Any, given: dict[str, Any]
    ) -> tuple[_core.LlmGeneration, int]:
        options = read_options(self._core.defaults(), given)
        tokens = read_tokens("prompt", prompt)
        with run_errors():
            return where.generate(tokens, options), options.n


class Session:
    """One text, to which prompts and what the model generates are added. It generates one text at a
    time; `fork` it for others."""

    def __init__(self, runner: Runner, core: _core.LlmSession) -> None:
        self._runner = runner
        self._core = core

    def generate_tokens(
        self, prompt: Any = (), *, on_piece: OnPiece | None = None, **options: Any
    ) -> Reply:
        """Add a prompt of token ids and go on with the text; as `Runner.generate_tokens`.

        Args:
            prompt: may be empty if the session has a text.
            on_piece: called with each `Piece` as it is made.
            options: docs/llm/runner.md lists them.

        Raises:
            RunError: an option or the prompt is refused, or the model failed.
        """
        core, choices = self._runner._start(self._core, prompt, options)
        return finished(core, choices, on_piece)

    def stream_tokens(self, prompt: Any = (), **options: Any) -> Stream:
        """Start `generate_tokens`; iterate over the result.

        Raises:
            RunError: an option or the prompt is refused.
        """
        return Stream(*self._runner._start(self._core, prompt, options))

    @property
    def tokens(self) -> list[int]:
        """The text. Assigning another one keeps the cache of what both begin with."""
        with run_errors():
            return self._core.tokens()

    @tokens.setter
    def tokens(self, tokens: Any) -> None:
        with run_errors():
            self._core.set_tokens(read_tokens("tokens", tokens))

    @property
    def cached(self) -> int:
        """How many tokens have their keys and values in the cache."""
        return self._core.cached()

    def rewind(self, count: int) -> None:
        """Drop the last `count` tokens.

        Raises:
            RunError: there are fewer, or a text is being generated.
        """
        with run_errors():
            self._core.rewind(count)

    def fork(self) -> Session:
        """A session with the same text. Both share its cache.

        Raises:
            RunError: a text is being generated.
        """
        with run_errors():
            return Session(self._runner, self._core.fork())
