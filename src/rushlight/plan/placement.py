"""Places blocks one after the other, each into a gap between blocks with overlapping lifetimes.

Strategies differ only in the order of the blocks and in the gap that they choose; all use this
class. Only pairs of blocks that are live at the same time are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from rushlight.plan.block import Block, align, padded_sizes

Fit = Literal["first", "best"]
"""The lowest gap that is large enough, or the one that leaves least over."""

_UNPLACED = -1


class Placement:
    """The blocks of one memory, prepared for being placed in many different orders.

    A block is named by its index in the sequence passed here. Blocks that are live together with
    every other one ("residents") are placed at the bottom once, which wastes no memory; only the
    others, in `free`, are placed in an order.

    Attributes:
        sizes: padded sizes in bytes.
        base: bytes that residents take.
        free: indices of all other blocks, in order of their start.
        pairs: the cost of placing all of them once, in comparisons of neighbours.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.sizes = padded_sizes(blocks)
        self._residents, self.base = self._place_residents()
        moving = (i for i in range(len(blocks)) if i not in self._residents)
        self.free = sorted(moving, key=lambda i: (blocks[i].start, blocks[i].end, i))
        self._neighbours = self._find_neighbours()
        self.pairs = sum(map(len, self._neighbours))

    def neighbours(self, index: int) -> list[int]:
        """The free blocks that are live at some time together with block `index`."""
        return self._neighbours[index]

    def new_offsets(self) -> list[int]:
        """Offsets with the residents placed, for `place`."""
        return [self._residents.get(i, _UNPLACED) for i in range(len(self.blocks))]

    def place(
        self,
        order: Iterable[int],
        *,
        fit: Fit = "first",
        limit: int | None = None,
        offsets: list[int] | None = None,
    ) -> list[int] | None:
        """Place free blocks in this order.

        Args:
            order: indices of free blocks.
            fit: the gap to choose.
            limit: give up as soon as a block ends above this many bytes.
            offsets: the offsets of blocks placed already (from `new_offsets`, changed in place).

        Returns:
            the offset of every block by index, or None if it gave up.
        """
        placed = self.new_offsets() if offsets is None else offsets
        for index in order:
            offset = self._gap(index, placed, fit)
            if limit is not None and offset + self.sizes[index] > limit:
                return None
            placed[index] = offset
        return placed

    def top(self, offsets: Sequence[int]) -> int:
        """Bytes that the memory needs for these offsets."""
        return max((o + s for o, s in zip(offsets, self.sizes, strict=True)), default=0)

    def _gap(self, index: int, offsets: list[int], fit: Fit) -> int:
        sizes, size, unit = self.sizes, self.sizes[index], self.blocks[index].alignment
        taken = [(o, i) for i in self._neighbours[index] if (o := offsets[i]) != _UNPLACED]
        taken.sort()
        at = align(self.base, unit)
        chosen, least = -1, 0
        for offset, other in taken:
            room = offset - at
            if room >= size and (chosen < 0 or room < least):
                chosen, least = at, room
                if fit == "first":
                    break
            end = offset + sizes[other]
            if end > at:
                at = align(end, unit)
        return at if chosen < 0 else chosen

    def _place_residents(self) -> tuple[dict[int, int], int]:
        used = [block for block in self.blocks if block.size]
        last_start = max((block.start for block in used), default=0)
        first_end = min((block.end for block in used), default=0)
        residents = [
            i
            for i, block in enumerate(self.blocks)
            if not block.size or (block.start <= first_end and block.end >= last_start)
        ]
        residents.sort(key=lambda i: -self.blocks[i].alignment)
        offsets, top = {}, 0
        for i in residents:
            if not self.sizes[i]:
                offsets[i] = 0
                continue
            offsets[i] = align(top, self.blocks[i].alignment)
            top = offsets[i] + self.sizes[i]
        return offsets, top

    def _find_neighbours(self) -> list[list[int]]:
        order = np.array(self.free, dtype=np.int64)
        ends = np.array([self.blocks[i].end for i in self.free], dtype=np.int64)
        neighbours: list[list[int]] = [[] for _ in self.blocks]
        for position, index in enumerate(self.free):
            live = ends[:position] >= self.blocks[index].start
            earlier = order[:position][live].tolist()
            neighbours[index].extend(earlier)
            for other in earlier:
                neighbours[other].append(index)
        return neighbours
