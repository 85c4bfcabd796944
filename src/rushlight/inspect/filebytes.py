"""The bytes of a program file by kind; every byte is counted once."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable

import numpy as np

from rushlight.schema.codec import Buffer
from rushlight.serialize.file import PTEFile
from rushlight.serialize.segments import Data, as_bytes

PROGRAM, CONSTANTS, STATE = "program", "constants", "initial state"
DELEGATES, NAMED_DATA, PADDING = "delegates", "named data", "padding"

# After the flatbuffer's first 8 bytes, if the file has segments: magic, length, program bytes.
_HEADER = struct.Struct("<4sIQ")


def bytes_by_kind(data: Buffer, pte: PTEFile) -> dict[str, int]:
    """Bytes of the file by kind; they sum to the length of `data`.

    Args:
        data: the file's bytes.
        pte: the result of :func:`~rushlight.serialize.pte.read_pte` for the same object.
    """
    view = memoryview(data).cast("B")
    magic, _, program_bytes = _HEADER.unpack_from(view, 8)
    end = program_bytes if magic == b"eh00" else len(view)
    start = _address(view)
    kinds: dict[str, list[Data]] = {
        CONSTANTS: pte.constants,
        STATE: pte.mutable_data,
        DELEGATES: pte.delegate_blobs,
        NAMED_DATA: list(pte.named_data.values()),
    }
    sizes = {PROGRAM: end, **dict.fromkeys(kinds, 0)}
    taken: list[tuple[int, int]] = []
    for kind, parts in kinds.items():
        ranges = []
        for part in map(as_bytes, parts):
            at = _address(part) - start if len(part) else 0
            if end <= at and at + len(part) <= len(view):
                ranges.append((at, at + len(part)))
            elif len(part):  # stored inside the flatbuffer
                inside = min(len(part), sizes[PROGRAM])
                sizes[PROGRAM] -= inside
                sizes[kind] += inside
        before = _covered(taken)
        taken += ranges
        sizes[kind] += _covered(taken) - before
    sizes[PADDING] = len(view) - sum(sizes.values())
    return {kind: size for kind, size in sizes.items() if size or kind == PROGRAM}


def _address(view: memoryview) -> int:
    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])


def same_place(parts: Iterable[Data]) -> list[bool]:
    """For each of `parts` of one file, whether another part is the same range of the file."""
    places = [(_address(p), len(p)) if len(p := as_bytes(part)) else None for part in parts]
    seen = Counter(places)
    return [place is not None and seen[place] > 1 for place in places]


def _covered(ranges: list[tuple[int, int]]) -> int:
    """The number of bytes in at least one of the ranges."""
    total, reached = 0, 0
    for start, end in sorted(ranges):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total
