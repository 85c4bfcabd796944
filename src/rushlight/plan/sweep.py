"""Places very many blocks in the order of execution, as an allocator at run time would.

If thousands of blocks are live at once, there are too many pairs of neighbours to compare. Here
only free gaps are tracked: each block is placed in the tightest gap or on top, and becomes a gap
when its lifetime ends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from rushlight.plan.block import Block, align, padded_sizes


def overlaps(blocks: Sequence[Block]) -> int:
    """The number of pairs of blocks that are live at the same time."""
    used = [block for block in blocks if block.size]
    starts = sorted(block.start for block in used)
    ends = sorted(block.end for block in used)
    return sum(at - bisect_left(ends, start) for at, start in enumerate(starts))


def place_by_start(blocks: Sequence[Block]) -> list[int]:
    """The offset of each block of one memory, by index."""
    sizes = padded_sizes(blocks)
    unit = max((block.alignment for block in blocks if block.size), default=1)
    offsets = [0] * len(blocks)
    events = [(block.start, 1, -sizes[i], i) for i, block in enumerate(blocks) if sizes[i]]
    events += [(block.end, 2, 0, i) for i, block in enumerate(blocks) if sizes[i]]
    gaps = _Gaps()
    for _, kind, _, i in sorted(events):
        size = align(sizes[i], unit)
        if kind == 1:
            offsets[i] = gaps.take(size)
        else:
            gaps.give(offsets[i], size)
    return offsets


class _Gaps:
    """The free bytes of one memory, whose top is open."""

    def __init__(self) -> None:
        self._top = 0
        self._by_size: list[tuple[int, int]] = []  # size, offset
        self._starts: list[int] = []  # of gaps, ascending
        self._ends: list[int] = []

    def take(self, size: int) -> int:
        """The offset for `size` bytes: in the tightest gap, else at the top."""
        at = bisect_left(self._by_size, (size, 0))
        if at < len(self._by_size):
            length, offset = self._by_size[at]
            self._remove(bisect_left(self._starts, offset))
            if length > size:
                self._add(offset + size, offset + length)
            return offset
        offset = self._top
        if self._ends and self._ends[-1] == offset:  # use the gap below the top, too
            offset = self._starts[-1]
            self._remove(len(self._starts) - 1)
        self._top = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        """Free bytes; gaps that touch become one."""
        end = offset + size
        at = bisect_right(self._starts, offset)
        if at < len(self._starts) and self._starts[at] == end:
            end = self._ends[at]
            self._remove(at)
        if at > 0 and self._ends[at - 1] == offset:
            offset = self._starts[at - 1]
            self._remove(at - 1)
        self._add(offset, end)

    def _add(self, start: int, end: int) -> None:
        at = bisect_left(self._starts, start)
        self._starts.insert(at, start)
        self._ends.insert(at, end)
        insort(self._by_size, (end - start, start))

    def _remove(self, at: int) -> None:
        start, end = self._starts.pop(at), self._ends.pop(at)
        self._by_size.pop(bisect_left(self._by_size, (end - start, start)))
