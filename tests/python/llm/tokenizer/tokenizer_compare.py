"""Compares a tokenizer with that of another library, token for token."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rushlight.llm.tokenizer import Tokenizer


def assert_equal_tokens(
    ours: Tokenizer,
    encode: Callable[[str], list[int]],
    decode: Callable[[list[int]], str],
    texts: Iterable[str],
    *,
    add_special: bool = True,
    skip_special: bool = False,
) -> None:
    """Holds tokens of texts, texts of tokens and streams of them to another library's."""
    for text in texts:
        expected = encode(text)
        tokens = ours.encode(text, add_special=add_special)
        assert tokens == expected, (text[:200], *_first_difference(ours, tokens, expected))
        decoded = ours.decode(tokens, skip_special=skip_special)
        assert decoded == decode(expected), text[:200]
        assert "".join(ours.stream(tokens, skip_special=skip_special)) == decoded


def _first_difference(
    ours: Tokenizer, tokens: list[int], expected: list[int]
) -> tuple[list[bytes], list[bytes]]:
    pairs = zip(tokens, expected, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(tokens), len(expected)))
    near = slice(max(0, at - 3), at + 4)
    return [ours.piece(one) for one in tokens[near]], [ours.piece(one) for one in expected[near]]
