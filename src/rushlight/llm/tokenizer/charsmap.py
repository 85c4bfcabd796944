"""SentencePiece's precompiled map of characters: what it may do with each character."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from enum import IntFlag
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


class CharacterClass(IntFlag):
    """What becomes of a character: the classes in `cpp/llm/tokenizer/table.h`."""

    REPLACED_ALONE = 1
    BEGINS_REPLACED = 2
    SECOND_REPLACED = 4
    KEPT_SPACE = 8


class _Reached(NamedTuple):
    """Characters that lead on from places of the map; arrays of one size."""

    origins: Numbers  # indices of the places from which they lead on
    codes: Numbers
    places: Numbers
    ends: npt.NDArray[np.bool_]  # whether a text that is replaced ends there

    def chosen(self, which: npt.NDArray[np.bool_]) -> _Reached:
        """Some of them."""
        return _Reached(
            self.origins[which], self.codes[which], self.places[which], self.ends[which]
        )


def parts(charsmap: bytes) -> tuple[bytes, bytes]:
    """The double array of the texts that are replaced, and the texts that replace them.

    Args:
        charsmap: the map, which is not empty.
    """
    (size,) = struct.unpack_from("<I", charsmap)
    return charsmap[4 : 4 + size], charsmap[4 + size :] + b"\0"


def character_classes(charsmap: bytes, kept: Iterable[bytes]) -> dict[int, int]:
    """The class of each character that is not simply kept.

    Args:
        charsmap: the map, or nothing.
        kept: texts that are looked for before those of the map.
    """
    classes: dict[int, int] = {}

    def add(codes: Numbers, flag: CharacterClass) -> None:
        for code in codes.tolist():
            classes[code] = classes.get(code, 0) | flag

    starts = [ord(text.decode()[0]) for text in kept if text]
    add(np.array(starts, np.int64), CharacterClass.REPLACED_ALONE)
    if charsmap:
        _add_map(np.frombuffer(parts(charsmap)[0], "<u4").astype(np.int64), add)
    if ord(" ") not in classes:
        add(np.array([ord(" ")]), CharacterClass.KEPT_SPACE)
    add(np.array([ord(" ")]), CharacterClass.REPLACED_ALONE)
    return classes


def _add_map(units: Numbers, add: Callable[[Numbers, CharacterClass], None]) -> None:
    first = _reached(units, _children(units[:1]))
    second = _reached(units, first.places)
    begins = first.codes[second.origins]
    add(first.codes[first.ends], CharacterClass.REPLACED_ALONE)
    add(np.unique(begins), CharacterClass.BEGINS_REPLACED)
    add(np.unique(second.codes), CharacterClass.SECOND_REPLACED)
    # C++ takes it that ASCII characters do not join each other.
    ascii_pairs = (begins < 0x80) & (second.codes < 0x80)
    add(np.unique(begins[ascii_pairs]), CharacterClass.REPLACED_ALONE)


def _children(units: Numbers) -> Numbers:
    return (units >> 10) << ((units & (1 << 9)) >> 6)


def _reached(units: Numbers, places: Numbers) -> _Reached:
    """The characters that lead on from places, found byte for byte."""
    origins = np.arange(len(places))
    leads = np.concatenate([np.arange(1, 0x80), np.arange(0xC2, 0xF5)])
    codes = np.zeros(len(places), np.int64)
    made: list[_Reached] = []
    first = _follow(units, _Reached(origins, codes, places, codes > 0), leads)
    sizes = ((0x80, 0x7F), (0xE0, 0x1F), (0xF0, 0x0F), (0xF5, 0x07))
    lowest = 0
    for more, (limit, mask) in enumerate(sizes):
        of_size = (first.codes >= lowest) & (first.codes < limit)
        lowest = limit
        reached = first.chosen(of_size)
        reached = reached._replace(codes=reached.codes & mask)
        for _ in range(more):
            reached = _follow(units, reached, np.arange(0x80, 0xC0))
        made.append(reached)
    return _Reached(*(np.concatenate(each) for each in zip(*made, strict=True)))


def _follow(units: Numbers, reached: _Reached, following: Numbers) -> _Reached:
    """What is reached by one more byte; those that begin a character become its code."""
    count = len(following)
    origins, codes = np.repeat(reached.origins, count), np.repeat(reached.codes, count)
    added = np.tile(following, len(reached.places))
    at = np.repeat(reached.places, count) ^ added
    inside = at < len(units)
    label = np.where(inside, units[np.where(inside, at, 0)] & (1 << 31 | 0xFF), -1)
    leads = label == added
    at, added = at[leads], added[leads]
    continues = (added & 0xC0) == 0x80
    codes = np.where(continues, codes[leads] << 6 | added & 0x3F, added)
    ends = (units[at] >> 8 & 1) != 0
    return _Reached(origins[leads], codes, at ^ _children(units[at]), ends)
