"""Merges of byte-pair encoding that follow from the tokens alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import AnyStr, NamedTuple

Merges = Mapping[tuple[int, int], tuple[int, int]]
_LONGEST_DOUBT = 256  # symbols of a token that are merged to see what they become


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


class Derived(NamedTuple):
    """The tokens that their own texts become.

    Attributes:
        texts: of these tokens.
        halves: of those that are no symbols, the two tokens that are merged last, and the rank.
    """

    texts: dict[int, bytes]
    halves: dict[int, tuple[int, int, int]]


def spelled(merges: Merges, symbols: Mapping[int, AnyStr]) -> dict[int, AnyStr]:
    """The texts of all tokens that merges may make.

    Args:
        merges: (left, right) -> (rank, token).
        symbols: the texts of the symbols with which words begin.
    """
    texts = dict(symbols)
    waiting = sorted(merges.items(), key=lambda one: one[1][0])
    while True:
        later = []
        for pair, (rank, token) in waiting:
            left, right = texts.get(pair[0]), texts.get(pair[1])
            if left is None or right is None:
                later.append((pair, (rank, token)))
            else:
                texts.setdefault(token, left + right)
        if len(later) == len(waiting):
            return texts
        waiting = later


def derived(merges: Merges, symbols: Mapping[int, bytes]) -> Derived | None:
    """The tokens that their own texts become, and their last merges.

    None: there is a token whose last merge has no greater rank than those before it, or which has
    several texts. Of other merges, tokens beside each other stay what they are if each two of them
    do, which `_stay_apart` tells.

    Args:
        merges: (left, right) -> (rank, token).
        symbols: the texts of the symbols with which words begin.
    """
    texts = spelled(merges, symbols)
    halves: dict[int, tuple[int, int, int]] = {}
    doubtful = set()
    for (left, right), (rank, token) in sorted(merges.items(), key=lambda one: one[1][0]):
        if left not in texts or right not in texts:
            continue
        if token in symbols or texts[token] != texts[left] + texts[right]:
            return None
        if token in halves:
            continue
        known = (
            one in symbols or (one in halves and halves[one][2] < rank) for one in (left, right)
        )
        if not all(known):
            doubtful.add(token)
        elif _stay_apart(left, right, merges, halves):
            halves[token] = (left, right, rank)
    symbol_of = {text: symbol for symbol, text in symbols.items()}
    for token in doubtful - halves.keys():
        parts = _symbols(texts[token], symbol_of)
        if len(parts) > _LONGEST_DOUBT or _merged(parts, merges) == [token]:
            return None
    own = {token: text for token, text in texts.items() if token in symbols or token in halves}
    return Derived(own, halves)


def _stay_apart(
    left: int, right: int, merges: Merges, halves: Mapping[int, tuple[int, int, int]]
) -> bool:
    """Whether the texts of two tokens become these before the tokens themselves are merged.

    The merges that made the two are undone, the last one first. Before each there may be a merge of
    what is beside each other then; it counts if it comes before the one that was undone: by its
    rank, or with the same rank farther to the left.
    """
    while True:
        left_rank, right_rank = (halves[one][2] if one in halves else -1 for one in (left, right))
        if left_rank == right_rank == -1:
            return True
        if left_rank > right_rank:
            limit, left = left_rank - 1, halves[left][1]
        else:
            limit, right = right_rank, halves[right][0]
        merge = merges.get((left, right))
        if merge is not None and merge[0] <= limit:
            return False


def _symbols(text: bytes, symbol_of: Mapping[bytes, int]) -> list[int]:
    """Those of bytes, or else of characters."""
    if all(len(one) == 1 for one in symbol_of):
        return [symbol_of[text[at : at + 1]] for at in range(len(text))]
    return [symbol_of[one.encode()] for one in text.decode()]


def _merged(tokens: list[int], merges: Merges) -> list[int]:
    """What a few tokens become."""
    while True:
        pairs = [(*merges[pair], at) for at, pair in enumerate(pairwise(tokens)) if pair in merges]
        if not pairs:
            return tokens
        _, token, at = min(pairs, key=lambda one: (one[0], one[2]))
        tokens = [*tokens[:at], token, *tokens[at + 2 :]]
