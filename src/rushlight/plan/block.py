"""The blocks that a memory planner places, its plan, the lower bound, and the check of a plan."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rushlight.errors import Code, ExportError

BlockId = Hashable


@dataclass(frozen=True)
class Block:
    """Bytes that one value (or several that share their memory) occupy for a while.

    Attributes:
        id: the caller's name for it; unique among the blocks planned together.
        size: bytes; 0 is allowed and takes no space.
        start: the index of the first instruction that uses it.
        end: the index of the last one; the block is live at both.
        memory_id: the memory for it, counted from 1.
        alignment: its offset is a multiple of this power of two.
    """

    id: BlockId
    size: int
    start: int
    end: int
    memory_id: int = 1
    alignment: int = 16

    def __post_init__(self) -> None:
        problem = ""
        if self.size < 0:
            problem = f"its size is {self.size}; it must not be negative"
        elif not 0 <= self.start <= self.end:
            problem = f"it lives from {self.start} to {self.end}; 0 <= start <= end must hold"
        elif self.memory_id < 1:
            problem = f"its memory id is {self.memory_id}; memories are counted from 1"
        elif self.alignment < 1 or self.alignment & (self.alignment - 1):
            problem = f"its alignment is {self.alignment}; it must be a power of two"
        if problem:
            raise ExportError(
                f"cannot plan memory for block {self.id!r}: {problem}",
                code=Code.INVALID_ARGUMENT,
            )


@dataclass(frozen=True)
class Plan:
    """The offset of every block.

    Attributes:
        offsets: bytes from the start of the block's memory, by block id.
        sizes: bytes that each memory must have, by memory id.
        strategy: the strategy that found it (one name, or one for each memory).
        lower_bound: the size below which no plan can go, by memory id.
    """

    offsets: dict[BlockId, int]
    sizes: dict[int, int]
    strategy: str
    lower_bound: dict[int, int]


class Planner(Protocol):
    """A planner of the user: called with all blocks, returns an offset for every id.

    Its plan is checked by `check_plan` before it is used.
    """

    def __call__(self, blocks: Sequence[Block]) -> Mapping[BlockId, int]:
        """Choose the offset of every block in its memory."""
        ...


def align(value: int, alignment: int) -> int:
    """The least multiple of `alignment` (a power of two) that is not below `value`."""
    return (value + alignment - 1) & -alignment


def by_memory(blocks: Iterable[Block]) -> dict[int, list[Block]]:
    """The blocks of each memory id, in their order; memory ids ascending."""
    groups: dict[int, list[Block]] = defaultdict(list)
    for block in blocks:
        groups[block.memory_id].append(block)
    return dict(sorted(groups.items()))


def padded_sizes(group: Sequence[Block]) -> list[int]:
    """Sizes rounded up to the least alignment in this memory: no block can use the padding."""
    least = min((block.alignment for block in group if block.size), default=1)
    return [align(block.size, least) for block in group]


def live_bytes(group: Sequence[Block]) -> list[tuple[int, int]]:
    """Live bytes of one memory over time: (instruction, bytes from there on), sizes padded."""
    change: dict[int, int] = defaultdict(int)
    for block, size in zip(group, padded_sizes(group), strict=True):
        change[block.start] += size
        change[block.end + 1] -= size
    live, changes = 0, []
    for instruction, delta in sorted(change.items()):
        live += delta
        changes.append((instruction, live))
    return changes


def lower_bound(blocks: Iterable[Block]) -> dict[int, int]:
    """The peak of live bytes of each memory, sizes padded: no plan can be smaller."""
    return {
        memory_id: max(live for _, live in live_bytes(group))
        for memory_id, group in by_memory(blocks).items()
    }


def arena_sizes(blocks: Iterable[Block], offsets: Mapping[BlockId, int]) -> dict[int, int]:
    """Bytes that each memory needs for these offsets; a missing one counts as 0."""
    return {
        memory_id: max(
            offsets.get(block.id, 0) + size
            for block, size in zip(group, padded_sizes(group), strict=True)
        )
        for memory_id, group in by_memory(blocks).items()
    }


def check_plan(
    blocks: Sequence[Block], offsets: Mapping[BlockId, int], sizes: Mapping[int, int]
) -> None:
    """Check that a plan can be used.

    Raises:
        ExportError: a block has no offset, a misaligned one or one that leaves its memory; or
            two blocks that live at the same time share bytes. Names the blocks.
    """
    for block in blocks:
        _check_block(block, offsets.get(block.id), sizes.get(block.memory_id, 0))
    for group in by_memory(blocks).values():
        _check_overlaps(group, offsets)


def _check_block(block: Block, offset: int | None, size: int) -> None:
    if offset is None:
        raise _invalid(f"block {block.id!r} has no offset")
    if offset < 0 or offset % block.alignment:
        raise _invalid(
            f"block {block.id!r} is at offset {offset}, which is not a multiple of its "
            f"alignment {block.alignment}"
        )
    if offset + block.size > size:
        raise _invalid(
            f"block {block.id!r} needs bytes {offset} to {offset + block.size}, but memory "
            f"{block.memory_id} has {size}"
        )


def _check_overlaps(group: Iterable[Block], offsets: Mapping[BlockId, int]) -> None:
    """Sweep over time; live blocks are kept sorted by offset, so only neighbours can collide."""
    events = []
    for block in group:
        if block.size:
            events.append((block.start, 1, offsets[block.id], block))
            events.append((block.end, 2, offsets[block.id], block))
    events.sort(key=lambda event: event[:3])
    live: list[tuple[int, int]] = []
    holder: dict[int, Block] = {}
    for _, kind, offset, block in events:
        entry = (offset, offset + block.size)
        if kind == 2:
            del live[bisect_left(live, entry)]
            del holder[offset]
            continue
        at = bisect_left(live, entry)
        for other in live[max(at - 1, 0) : at + 1]:
            if other[0] < entry[1] and entry[0] < other[1]:
                raise _invalid(_collision(block, holder[other[0]], offsets))
        insort(live, entry)
        holder[offset] = block


def _collision(a: Block, b: Block, offsets: Mapping[BlockId, int]) -> str:
    def place(block: Block) -> str:
        offset = offsets[block.id]
        return (
            f"{block.id!r} (bytes {offset} to {offset + block.size}, instructions "
            f"{block.start} to {block.end})"
        )

    return f"blocks {place(a)} and {place(b)} share bytes while both live"


def _invalid(problem: str) -> ExportError:
    return ExportError(
        f"invalid memory plan: {problem}; the planner that made it is wrong",
        code=Code.INVALID_STATE,
    )
