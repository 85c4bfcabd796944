"""The operations of normalisers and pre-tokenizers.

`cpp/llm/tokenizer/operations.h` has the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag, auto


class Normalize(IntEnum):
    """What a normaliser does."""

    REPLACE = 0
    REPLACE_RUNS = auto()
    PREPEND = auto()
    STRIP = auto()
    LOWERCASE = auto()
    STRIP_ACCENTS = auto()
    DECOMPOSE = auto()
    COMPOSE = auto()
    BERT_CLEAN = auto()
    BERT_CHINESE = auto()
    BERT_ACCENTS = auto()
    CHARSMAP = auto()
    SENTENCE_PIECE = auto()
    NMT = auto()


class Split(IntEnum):
    """What a pre-tokenizer does."""

    PATTERN = 0
    TEXT = auto()
    DIGITS = auto()
    SPACES = auto()
    WORDS = auto()
    PUNCTUATION = auto()
    BERT = auto()
    METASPACE = auto()
    ADD_SPACE = auto()


BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
PREPENDS = ("never", "first", "always")


class SentencePieceFlag(IntFlag):
    """How SentencePiece's own normaliser treats spaces."""

    COLLAPSE_SPACES = 1
    DUMMY_PREFIX = 2
    ESCAPE_SPACES = 4
    SUFFIX = 8


@dataclass(frozen=True)
class Operation:
    """One operation, with the numbers and texts that its kind takes."""

    kind: Normalize | Split
    a: int = 0
    b: int = 0
    c: int = 0
    text: bytes = b""
    other: bytes = b""
