"""A memory plan as data to draw: rectangles over time, live bytes, and the overhead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rushlight.plan.block import Block, BlockId, Plan, by_memory, live_bytes


@dataclass(frozen=True)
class PlacedBlock:
    """One rectangle: instructions `start` to `end`, bytes `offset` to ``offset + size``."""

    name: str
    offset: int
    size: int
    start: int
    end: int


@dataclass(frozen=True)
class MemoryReport:
    """The plan of one memory.

    Attributes:
        memory_id: the memory's id.
        size: its planned bytes.
        lower_bound: the peak of live bytes; `size` cannot be below it.
        strategy: the strategy that found the plan.
        blocks: the rectangles, in order of start, then offset.
        live: live bytes over time, as (instruction, bytes from there on).
        sum_of_blocks: the bytes that it would need without sharing.
    """

    memory_id: int
    size: int
    lower_bound: int
    strategy: str
    blocks: tuple[PlacedBlock, ...]
    live: tuple[tuple[int, int], ...]
    sum_of_blocks: int

    @property
    def overhead(self) -> float:
        """By how much the plan exceeds the lower bound, as a fraction (0.02 is 2 %)."""
        return self.size / self.lower_bound - 1.0 if self.lower_bound else 0.0

    def at_peak(self) -> tuple[PlacedBlock, ...]:
        """The blocks that are live at the first instruction of the peak, largest first."""
        instruction, _ = max(self.live, key=lambda entry: entry[1], default=(0, 0))
        crowd = (b for b in self.blocks if b.start <= instruction <= b.end)
        return tuple(sorted(crowd, key=lambda b: -b.size))


def report_plan(
    blocks: Sequence[Block], plan: Plan, names: Mapping[BlockId, str] | None = None
) -> list[MemoryReport]:
    """Describe a plan, one report for each memory.

    Args:
        blocks: the planned blocks.
        plan: their plan.
        names: names of the blocks; a block without a name is called by its id.
    """
    names = names or {}
    reports = []
    for memory_id, group in by_memory(blocks).items():
        placed = [
            PlacedBlock(names.get(b.id, str(b.id)), plan.offsets[b.id], b.size, b.start, b.end)
            for b in group
        ]
        placed.sort(key=lambda b: (b.start, b.offset))
        reports.append(
            MemoryReport(
                memory_id=memory_id,
                size=plan.sizes[memory_id],
                lower_bound=plan.lower_bound[memory_id],
                strategy=plan.strategy,
                blocks=tuple(placed),
                live=tuple(live_bytes(group)),
                sum_of_blocks=sum(b.size for b in group),
            )
        )
    return reports
