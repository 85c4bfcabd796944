"""Parts of program and data files: a flatbuffer with a header after its head, and segments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rushlight.errors import Code, LoadError
from rushlight.schema.codec import Buffer
from rushlight.schema.common import DataSegment

#: Data to write: anything with bytes. Arrays are written in C order.
Data = Buffer | NDArray[Any]

# The flatbuffer's own head: the offset of its root, and the identifier.
HEAD_BYTES = 8
# The size of a header inserted after the head is a multiple of this, so that alignments inside the
# flatbuffer do not change.
HEADER_ALIGNMENT = 16
_SAMPLE = 64  # bytes of the start, middle and end that agree before parts are compared whole

#: The size of some data, and a sample of it.
Key = tuple[int, bytes]


def as_bytes(data: Data) -> memoryview:
    """The bytes of `data` as a flat view; copies only an array that is not in C order."""
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
    view = memoryview(data)
    return view.cast("B") if view.nbytes else memoryview(b"")


def key_of(view: memoryview) -> Key:
    """A key that equal data share, and that differs for most other data."""
    middle = len(view) // 2
    parts = (view[:_SAMPLE], view[middle : middle + _SAMPLE], view[-_SAMPLE:])
    return len(view), b"".join(parts)


def aligned(size: int, alignment: int) -> int:
    """`size` rounded up to a multiple of `alignment`."""
    return -(-size // alignment) * alignment


@dataclass
class _Segment:
    parts: list[memoryview]
    size: int
    alignment: int
    inside: tuple[int, int] | None = None  # (an earlier segment, offset) that holds the bytes


@dataclass
class SegmentArea:
    """Collects the segments of a file, then computes their offsets and yields their bytes.

    Attributes:
        alignment: every segment starts at a multiple of this and of its own alignment.
    """

    alignment: int
    _segments: list[_Segment] = field(default_factory=list)

    def add(self, parts: Iterable[Data], alignment: int = 1) -> int:
        """Appends a segment made of `parts`; returns its index."""
        views = [as_bytes(part) for part in parts]
        self._segments.append(_Segment(views, sum(map(len, views)), alignment))
        return len(self._segments) - 1

    def add_once(self, data: Data, known: dict[Key, list[int]], alignment: int = 1) -> int:
        """Like `add`, but returns the index of a segment in `known` that has the same bytes.

        Args:
            known: the indices of the segments to search, by key; a new segment is added.
        """
        view = as_bytes(data)
        alike = known.setdefault(key_of(view), [])
        for index in alike:
            segment = self._segments[index]
            if segment.parts[0] == view:
                segment.alignment = math.lcm(segment.alignment, alignment)
                return index
        index = self.add([view], alignment)
        alike.append(index)
        return index

    def add_inside(self, outer: int, offset: int, size: int) -> int:
        """Appends a segment that shows `size` bytes at `offset` of segment `outer`."""
        self._segments.append(_Segment([], size, 1, (outer, offset)))
        return len(self._segments) - 1

    def table(self) -> list[DataSegment]:
        """The offset and size of each segment, relative to the start of the area."""
        places: list[DataSegment] = []
        end = 0
        for segment in self._segments:
            if segment.inside is not None:
                outer, inner = segment.inside
                places.append(DataSegment(places[outer].offset + inner, segment.size))
                continue
            offset = aligned(end, math.lcm(self.alignment, segment.alignment))
            places.append(DataSegment(offset, segment.size))
            end = offset + segment.size
        return places

    @property
    def size(self) -> int:
        """Bytes from the start of the area to the end of the last segment."""
        return max((place.offset + place.size for place in self.table()), default=0)

    def chunks(self) -> Iterator[Buffer]:
        """The bytes of the area, in order."""
        end = 0
        for segment, place in zip(self._segments, self.table(), strict=True):
            if segment.inside is not None:
                continue
            if place.offset > end:
                yield bytes(place.offset - end)
            yield from segment.parts
            end = place.offset + place.size


def with_header(flatbuffer: bytes, header: bytes) -> bytes:
    """`flatbuffer` with `header` inserted after its head, and the root offset corrected."""
    assert len(header) % HEADER_ALIGNMENT == 0
    root = int.from_bytes(flatbuffer[:4], "little") + len(header)
    return b"".join(
        [root.to_bytes(4, "little"), flatbuffer[4:HEAD_BYTES], header, flatbuffer[HEAD_BYTES:]]
    )


def pack_parts(parts: Sequence[Data], alignment: int) -> tuple[list[memoryview], list[int]]:
    """Lays `parts` out one after the other, each at a multiple of `alignment`.

    Returns:
        The chunks, with padding between them (none after the last), and the offset of each part.
    """
    chunks: list[memoryview] = []
    offsets: list[int] = []
    end = 0
    for part in map(as_bytes, parts):
        start = aligned(end, alignment)
        if start > end:
            chunks.append(memoryview(bytes(start - end)))
        chunks.append(part)
        offsets.append(start)
        end = start + len(part)
    return chunks, offsets


class PartFinder:
    """Finds data that a packed segment holds already.

    Args:
        parts: the packed parts.
        offsets: their offsets from `pack_parts`.
    """

    def __init__(self, parts: Sequence[Data], offsets: Sequence[int]) -> None:
        self._places: dict[Key, list[tuple[memoryview, int]]] = {}
        for part, offset in zip(map(as_bytes, parts), offsets, strict=True):
            self._places.setdefault(key_of(part), []).append((part, offset))

    def find(self, data: Data, alignment: int) -> int | None:
        """The offset of a part of the same bytes at a multiple of `alignment`, if there is one."""
        view = as_bytes(data)
        places = self._places.get(key_of(view), ()) if len(view) else ()
        return next((at for v, at in places if at % alignment == 0 and v == view), None)


class SegmentReader:
    """Reads the segments of a file; every range is checked before it is returned."""

    def __init__(self, area: memoryview, table: Sequence[DataSegment], code: Code) -> None:
        self._area = area
        self._table = table
        self._code = code

    def get(self, index: int, where: str) -> memoryview:
        """The bytes of segment `index`; `where` names its user in errors.

        Raises:
            LoadError: there is no such segment, or it reaches beyond the end of the file.
        """
        if not 0 <= index < len(self._table):
            self._fail(where, f"it is in segment {index}, but there are {len(self._table)}")
        segment = self._table[index]
        end = segment.offset + segment.size
        if end > len(self._area):
            self._fail(
                where,
                f"segment {index} ends at byte {end} of {len(self._area)}, the file is cut short",
            )
        return self._area[segment.offset : end]

    def part(self, index: int, start: int, size: int | None, where: str) -> memoryview:
        """`size` bytes at `start` of segment `index`, or all bytes after it if `size` is None.

        Raises:
            LoadError: the segment does not have these bytes.
        """
        data = self.get(index, where)
        end = len(data) if size is None else start + size
        if not start <= end <= len(data):
            self._fail(where, f"bytes {start} to {end} are not in segment {index} ({len(data)})")
        return data[start:end]

    def _fail(self, where: str, what: str) -> NoReturn:
        raise LoadError(f"{what}; export the program again", code=self._code, where=where)
