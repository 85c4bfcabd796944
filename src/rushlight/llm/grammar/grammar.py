"""The Python face of `cpp/llm/grammar/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rushlight import _core
from rushlight.errors import Code, Error

WHITE_SPACE = ("compact", "spaced", "flexible")
REASONING = ("none", "optional", "open")
_CACHE_BYTES = 64 << 20


def _error(failure: _core.Failure) -> Error:
    return Error(failure.args[1], code=Code(failure.args[0]))


def _check(white_space: str, reasoning: str) -> None:
    for name, value, allowed in (
        ("white_space", white_space, WHITE_SPACE),
        ("reasoning", reasoning, REASONING),
    ):
        if value not in allowed:
            raise Error(
                f"{name} is {value!r}: it can be {', '.join(allowed)}", code=Code.INVALID_ARGUMENT
            )


@dataclass(frozen=True)
class ToolFormat:
    """How a model writes calls of tools: JSON objects between markers.

    Args:
        begin: the text before a call; it may name special tokens.
        end: the text after it.
        separator: the text between calls.
        is_list: all calls are one JSON array between the markers.
        name: the key of the tool's name.
        arguments: the key of its arguments.
    """

    begin: str
    end: str
    separator: str = ""
    is_list: bool = False
    name: str = "name"
    arguments: str = "arguments"


class Vocabulary:
    """The tokens of a model as the bytes that each adds to a text; made once, for many grammars.

    Args:
        pieces: by token: its bytes; of a special token, its name.
        special: the tokens that stand for no text.
        ends: the tokens that end a reply.
        encode: how the tokenizer writes bytes as tokens, without special ones; None takes the
            longest token at each place.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        *,
        special: Iterable[int] = (),
        ends: Iterable[int] = (),
        encode: Callable[[bytes], Sequence[int]] | None = None,
    ) -> None:
        try:
            self._core = _core.Vocabulary(list(pieces), list(special), list(ends), encode)
        except _core.Failure as failure:
            raise _error(failure) from None

    @classmethod
    def from_core(cls, core: _core.Vocabulary) -> Vocabulary:
        """The vocabulary of a runner.

        Args:
            core: the extension's object.
        """
        vocabulary = cls.__new__(cls)
        vocabulary._core = core
        return vocabulary

    def __len__(self) -> int:
        return len(self._core)


class Grammar:
    """What a model may write; made by a class method, and shared by replies and threads."""

    def __init__(self, core: _core.Grammar, size: int) -> None:
        self._core = core
        self._size = size

    @classmethod
    def from_regex(
        cls, pattern: str, vocabulary: Vocabulary, *, cache_bytes: int = _CACHE_BYTES
    ) -> Grammar:
        """Texts that match a regular expression as a whole.

        Args:
            pattern: the expression; docs/llm/grammar.md has its syntax.
            vocabulary: the tokens.
            cache_bytes: how much memory masks may take.
        """
        try:
            core = _core.regex_grammar(pattern, vocabulary._core, cache_bytes)
        except _core.Failure as failure:
            raise _error(failure) from None
        return cls(core, len(vocabulary))

    @classmethod
    def from_json_schema(
        cls,
        schema: Mapping[str, Any] | bool | str,
        vocabulary: Vocabulary,
        *,
        white_space: str = "compact",
        reasoning: str = "none",
        cache_bytes: int = _CACHE_BYTES,
    ) -> Grammar:
        """JSON that a schema accepts (draft 2020-12, as far as docs/llm/grammar.md says).

        Args:
            schema: the schema, or its JSON.
            vocabulary: the tokens.
            white_space: "compact" (none), "spaced" (as `json.dumps` writes) or "flexible" (any).
            reasoning: what may come before: "none", "optional" (between `<think>` and `</think>`),
                or "open" (the prompt has opened it).
            cache_bytes: how much memory masks may take.
        """
        _check(white_space, reasoning)
        text = schema if isinstance(schema, str) else json.dumps(schema)
        try:
            core = _core.schema_grammar(text, vocabulary._core, white_space, reasoning, cache_bytes)
        except _core.Failure as failure:
            raise _error(failure) from None
        return cls(core, len(vocabulary))

    @classmethod
    def from_tools(
        cls,
        tools: Sequence[Mapping[str, Any]],
        vocabulary: Vocabulary,
        *,
        family: str | ToolFormat,
        tool_choice: str | Mapping[str, Any] = "auto",
        parallel: bool = True,
        white_space: str = "spaced",
        reasoning: str = "none",
        cache_bytes: int = _CACHE_BYTES,
    ) -> Grammar:
        """Calls of tools, as OpenAI's API describes them, in the form of a family of models.

        Args:
            tools: [{"type": "function", "function": {"name", "parameters"}}, ...].
            vocabulary: the tokens.
            family: the model's family, or the form of its calls.
            tool_choice: "none", "auto" (text, then perhaps calls), "required", or the one tool.
            parallel: whether several calls may be made.
            white_space, reasoning: as for :meth:`from_json_schema`.
            cache_bytes: how much memory masks may take.
        """
        _check(white_space, reasoning)
        form = family if isinstance(family, str) else astuple(family)
        texts = json.dumps(list(tools)), json.dumps(tool_choice)
        try:
            core = _core.tools_grammar(
                *texts, parallel, form, vocabulary._core, white_space, reasoning, cache_bytes
            )
        except _core.Failure as failure:
            raise _error(failure) from None
        return cls(core, len(vocabulary))

    @property
    def cache_bytes(self) -> int:
        """The memory that masks take now."""
        return self._core.cache_bytes()

    @property
    def bytes(self) -> int:
        """The memory that the automaton and masks take now."""
        return self._core.bytes()


class State:
    """One reply that a grammar constrains, token by token.

    Args:
        grammar: what may be written.
        history: how many tokens can be taken back.
    """

    def __init__(self, grammar: Grammar, *, history: int = 256) -> None:
        self._grammar = grammar
        self._core = _core.GrammarState(grammar._core, history)
        self._words = np.zeros(grammar._core.mask_words(), np.uint32)

    def mask(self) -> NDArray[np.bool_]:
        """By token: whether it may come next. End tokens may where the text may end."""
        self._core.mask(self._words)
        bits = np.unpackbits(self._words.view(np.uint8), bitorder="little")
        return bits[: self._grammar._size].astype(np.bool_)

    def accept(self, token: int) -> bool:
        """Go on by a token; False, and nothing changes, if it may not come next.

        Args:
            token: its number.
        """
        return self._core.accept(token)

    def accept_text(self, text: bytes) -> bool:
        """Go on by bytes, as by one token that has them.

        Args:
            text: UTF-8, which may end within a character.
        """
        return self._core.accept_text(text)

    def forced(self) -> list[int]:
        """The tokens that must come next, as the tokenizer writes them; the state stays."""
        return self._core.forced()

    def forced_text(self) -> bytes:
        """The bytes that must come next."""
        return self._core.forced_text()

    def can_end(self) -> bool:
        """Whether the text is whole."""
        return self._core.can_end()

    def must_end(self) -> bool:
        """Whether the text is whole, and nothing but an end token can follow."""
        return self._core.must_end()

    def has_ended(self) -> bool:
        """Whether an end token has come."""
        return self._core.has_ended()

    def rewind(self, tokens: int) -> bool:
        """Take back tokens; False, and nothing changes, if the history has not as many.

        Args:
            tokens: how many.
        """
        return self._core.rewind(tokens)

    def fork(self) -> State:
        """A copy, which goes on by itself."""
        copy = State.__new__(State)
        copy._grammar = self._grammar
        copy._core = self._core.fork()
        copy._words = self._words.copy()
        return copy
