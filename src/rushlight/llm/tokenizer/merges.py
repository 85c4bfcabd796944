"""Merges of byte-pair encoding that follow from the tokens alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import AnyStr, NamedTuple

Merges = Mapping[tuple[int, int], tuple[int, int]]
_PLACES = 65  # of bytes: 64 of those of longer characters, and one of ASCII
_NEVER = 0xFFFFFFFF


def halves(texts: Collection[AnyStr]) -> Iterator[tuple[AnyStr, AnyStr, AnyStr]]:
    """Each text with its two halves, for every place at which both may be tokens.

    Halves that are no longer than 1, or as long as one of the texts, may be. These lengths are few,
    so that a text of a megabyte is not cut a million times.

    Args:
        texts: of the tokens.
    """
    lengths = {1, *map(len, texts)}
    ordered = sorted(lengths)
    for text in texts:
        for at in ordered:
            if at >= len(text):
                break
            if len(text) - at in lengths:
                yield text, text[:at], text[at:]


class WholeCharacters(NamedTuple):
    """Characters with which words may begin in models over bytes.

    Attributes:
        tokens: of characters whose bytes become one token, if none of them is joined with a
            neighbour's before.
        ranks: of the last merges of their bytes.
        joins: for the places of a byte and of the next one, the least rank of a merge that joins a
            part of a character.
        joined: whole characters that a merge joins: the last one of its left, the first one of its
            right.
    """

    tokens: dict[str, int]
    ranks: dict[str, int]
    joins: list[int]
    joined: set[tuple[str, str]]


def whole_characters(merges: Merges, bytes_of: Mapping[int, int]) -> WholeCharacters:
    """The characters whose bytes need not be merged one by one.

    Such a character is one symbol from the beginning if the rank of its last merge is less than
    those of `joins` on both sides: then its bytes are merged before any other merge reaches them.

    Args:
        merges: (left, right) -> (rank, token).
        bytes_of: byte -> token.
    """
    texts = {token: bytes([byte]) for byte, token in bytes_of.items()}
    for (left, right), (_, token) in sorted(merges.items(), key=lambda one: one[1][0]):
        if left in texts and right in texts:
            texts.setdefault(token, texts[left] + texts[right])
    tokens: dict[str, int] = {}
    ranks: dict[bytes, int] = {}
    for token, text in texts.items():
        if text[0] >= 0xC2 and _is_character(text):
            made, rank = _merged([bytes_of[byte] for byte in text], merges)
            ranks[text] = rank
            if made == [token]:
                tokens[text.decode()] = token
    joins = [_NEVER] * (_PLACES * _PLACES)
    joined = set()
    for (left, right), (rank, _) in merges.items():
        if left not in texts or right not in texts:
            return WholeCharacters({}, {}, [], set())
        before, after = texts[left], texts[right]
        if 0x80 <= after[0] < 0xC0:
            continue  # within a character
        last, first = _last(before), after[: _size(after[0])]
        is_whole = _is_character(last) and _is_character(first)
        if is_whole:
            joined.add((last.decode(), first.decode()))
        if not is_whole or rank <= max(ranks.get(last, -1), ranks.get(first, -1)):
            at = _place(before[-1]) * _PLACES + _place(after[0])
            joins[at] = min(joins[at], rank)
    ranks_of = {one: ranks[one.encode()] for one in tokens}
    return WholeCharacters(tokens, ranks_of, joins, joined)


def _place(byte: int) -> int:
    return byte & 63 if byte >= 0x80 else 64


def _size(first: int) -> int:
    """The bytes of a character that begins with this one; 0 for one that begins none."""
    return 1 if first < 0x80 else 0 if first < 0xC2 else 2 if first < 0xE0 else 3 + (first >= 0xF0)


def _is_character(text: bytes) -> bool:
    """Whether these bytes are one, and valid."""
    try:
        return len(text.decode()) == 1
    except UnicodeDecodeError:
        return False


def _last(text: bytes) -> bytes:
    """The last character, or what there is of it."""
    at = len(text) - 1
    while at > 0 and 0x80 <= text[at] < 0xC0:
        at -= 1
    return text[at:]


def _merged(tokens: list[int], merges: Merges) -> tuple[list[int], int]:
    """What a few tokens become, and the greatest rank of their merges."""
    greatest = -1
    while True:
        pairs = [(*merges[pair], at) for at, pair in enumerate(pairwise(tokens)) if pair in merges]
        if not pairs:
            return tokens, greatest
        rank, token, at = min(pairs, key=lambda one: (one[0], one[2]))
        tokens = [*tokens[:at], token, *tokens[at + 2 :]]
        greatest = max(greatest, rank)
