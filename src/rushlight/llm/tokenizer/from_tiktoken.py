"""Reads a `tiktoken.Encoding`."""

from __future__ import annotations

from typing import Any

from rushlight.llm.tokenizer.merges import halves
from rushlight.llm.tokenizer.operations import Operation, Split
from rushlight.llm.tokenizer.patterns import alternatives_of
from rushlight.llm.tokenizer.table import AddedToken, Flag, Kind, Model, Tokens


def read_encoding(encoding: Any) -> Tokens:
    """What the table says of a `tiktoken.Encoding`.

    Raises:
        ExportError: its regular expression is not supported.
    """
    ranks: dict[bytes, int] = encoding._mergeable_ranks
    special: dict[str, int] = encoding._special_tokens
    pieces = [b""] * (max([*ranks.values(), *special.values()]) + 1)
    kinds = [0] * len(pieces)
    for text, token in ranks.items():
        pieces[token] = text
    for name, token in special.items():
        pieces[token] = name.encode()
        kinds[token] = int(Kind.SPECIAL)
    return Tokens(
        model=Model.BPE,
        pieces=pieces,
        kinds=kinds,
        flags=Flag.BYTE_LEVEL | Flag.IGNORE_MERGES,
        merges=merges_of(ranks),
        bytes_of={text[0]: token for text, token in ranks.items() if len(text) == 1},
        words=ranks,
        splitter=[Operation(Split.PATTERN, text=alternatives_of(encoding._pat_str))],
        added=[AddedToken(name.encode(), token, special=True) for name, token in special.items()],
    )


def merges_of(ranks: dict[bytes, int]) -> dict[tuple[int, int], tuple[int, int]]:
    """All pairs of tokens whose bytes together are a token; its number is the rank."""
    return {
        (ranks[left], ranks[right]): (ranks[text], ranks[text])
        for text, left, right in halves(ranks)
        if left in ranks and right in ranks
    }
