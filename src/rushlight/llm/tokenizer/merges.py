"""Merges of byte-pair encoding that follow from the tokens alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import AnyStr


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
