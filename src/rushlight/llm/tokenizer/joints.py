"""Which characters a merge may join, so that words are cut where none does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from rushlight.llm.tokenizer.merges import Merges, spelled

_BITS_PER_PAIR = 16
_ASCII = 128
Pairs = Iterable[tuple[str, str]]


def of_merges(merges: Merges, characters: Mapping[int, str]) -> Pairs:
    """The characters that merges join: the last one of the left and the first one of the right.

    Args:
        merges: (left, right) -> (rank, token).
        characters: the texts of the symbols with which words begin.
    """
    texts = spelled(merges, characters)
    return {
        (texts[left][-1], texts[right][0])
        for left, right in merges
        if left in texts and right in texts
    }


def joint_bits(pairs: Pairs) -> npt.NDArray[np.uint64]:
    """`joints` of `Table` in cpp/llm/tokenizer/table.h.

    Args:
        pairs: characters that may be joined.
    """
    codes = np.array([(ord(left), ord(right)) for left, right in pairs], np.uint64).reshape(-1, 2)
    first, second = codes[:, 0], codes[:, 1]
    is_ascii = (first | second) < _ASCII
    words = max(1, int((~is_ascii).sum()) * _BITS_PER_PAIR // 64)
    with np.errstate(over="ignore"):
        keys = (first << np.uint64(21) | second) * np.uint64(0x9E3779B97F4A7C15)
    bit = ((keys >> np.uint64(32)) * np.uint64(words * 64)) >> np.uint64(32)
    bit = np.where(is_ascii, first * np.uint64(_ASCII) + second, bit + np.uint64(_ASCII * _ASCII))
    bits = np.zeros(_ASCII * _ASCII // 64 + words, np.uint64)
    np.bitwise_or.at(bits, (bit // 64).astype(np.int64), np.uint64(1) << bit % np.uint64(64))
    return bits
