"""The tokenizer of a language model: text to tokens and back, in C++."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rushlight import _core
from rushlight.errors import Code, LoadError, RunError


class Tokenizer:
    """A tokenizer over a compiled table. Several threads may use one.

    Args:
        table: what `rushlight.llm.tokenizer.compile` wrote.

    Raises:
        LoadError: the table is damaged or of another version.
    """

    def __init__(self, table: bytes | bytearray | memoryview) -> None:
        try:
            self._core = _core.Tokenizer(bytes(table))
        except _core.Failure as failure:
            raise LoadError(failure.args[1], code=Code(failure.args[0])) from None

    @classmethod
    def from_source(cls, source: Any) -> Tokenizer:
        """Compiles a tokenizer and opens it.

        Args:
            source: what `compile` takes.
        """
        from rushlight.llm.tokenizer.compiler import compile

        return cls(compile(source))

    def encode(
        self, text: str | bytes, *, add_special: bool = True, parse_special: bool = True
    ) -> list[int]:
        """The tokens of a text.

        Args:
            text: the text; bytes that are not UTF-8 are read as U+FFFD.
            add_special: add the tokens that surround every text.
            parse_special: the text of a special token is that token; False takes it as text.

        Raises:
            RunError: the text is too long.
        """
        try:
            if isinstance(text, str):
                return self._core.encode(text, add_special, parse_special)
            return self._core.encode_bytes(bytes(text), add_special, parse_special)
        except _core.Failure as failure:
            raise RunError(failure.args[1], code=Code(failure.args[0])) from None

    def decode(self, tokens: Iterable[int], *, skip_special: bool = True) -> str:
        """The text of tokens, with U+FFFD for bytes that are not UTF-8.

        Args:
            tokens: the tokens; those that the vocabulary has not are left out.
            skip_special: leave out special tokens.
        """
        numbers = tokens if type(tokens) is list else list(tokens)
        return self._core.decode(numbers, skip_special)

    def piece(self, token: int) -> bytes:
        """The bytes that a token adds to a text that it does not begin.

        Args:
            token: a token; of a special one these are its text.
        """
        return self._core.piece(token)

    def stream(self, tokens: Iterable[int], *, skip_special: bool = True) -> Iterator[str]:
        """The text that each token completes, in whole characters.

        Args:
            tokens: the tokens, which may be made while the text is read.
            skip_special: leave out special tokens.
        """
        stream = _core.TextStream(self._core, skip_special)
        for token in tokens:
            yield stream.push(token).decode()
        yield stream.flush().decode()

    def special(self, text: str) -> int | None:
        """The special or added token of this text.

        Args:
            text: such as "<|end|>".
        """
        token = self._core.special(text.encode())
        return None if token < 0 else token

    def is_special(self, token: int) -> bool:
        """Whether a token is special, so that it is no part of a text.

        Args:
            token: a token.
        """
        return self._core.is_special(token)

    def __len__(self) -> int:
        """The size of the vocabulary."""
        return self._core.vocabulary()
