"""The memory plan of a method, read from the file: blocks, their lifetimes, live bytes.

The file holds an offset for every planned tensor but no lifetimes. These follow from the reads and
writes of the instructions: inputs live from the start, outputs and state to the end, everything
else from its first write to its last read, both inclusive.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.inspect.effects import Effect, is_external, is_named
from rushlight.inspect.model import Arena, Block, Value
from rushlight.schema import program as fb

_NEVER = 1 << 62
_DEFAULT_ALIGNMENT = 16  # of ExecuTorch's planner, and of ours
# More loops than this are treated as one, so that a damaged file cannot take minutes.
_MAX_LOOPS = 1000


@dataclass(slots=True)
class _Span:
    """Instructions that use a value: `first` writes it first, `read` reads it first, `last` is the
    last use."""

    first: int = _NEVER
    last: int = -1
    read: int = _NEVER


def arenas_of(
    plan: fb.ExecutionPlan, values: Sequence[Value], effects: Sequence[Effect]
) -> tuple[list[Arena], dict[int, int]]:
    """The arenas of a method with their blocks.

    Args:
        plan: the method.
        values: its values as the report shows them.
        effects: the effects of its instructions.

    Returns:
        The arenas by rising memory id, and for each view the value whose bytes it shows.
    """
    lives = _Lifetimes(plan, effects)
    blocks: dict[int, dict[int, Block]] = defaultdict(dict)
    for index in lives.owners():
        value, span = values[index], lives.spans[index]
        role = "state" if index in lives.state and value.role == "temporary" else value.role
        shown = (value.name, value.text, role, value.offset, value.bytes)
        writer = -1 if index in lives.filled_before else span.first
        blocks[value.memory_id][index] = Block(
            index, *shown, span.first, max(span.last, span.first), writer=writer
        )
    for view, base in lives.base.items():
        block = blocks[values[base].memory_id].get(base)
        if block is not None and values[view].memory_id == values[base].memory_id:
            block.views.append(view)
            _widen(block, values[view])
    for moved, last_move in lives.moved_at.items():
        _add_moved(blocks, values, lives, moved, last_move)
    sizes = plan.non_const_buffer_sizes
    return [_arena(k, sizes[k], list(blocks[k].values())) for k in range(1, len(sizes))], lives.base


def _add_moved(
    blocks: dict[int, dict[int, Block]],
    values: Sequence[Value],
    lives: _Lifetimes,
    moved: int,
    last_move: int,
) -> None:
    """Extend the lifetimes of the values that moves copy to `moved`: the results of branches.

    Each result is needed up to its move, and again after both branches; not in between, where the
    other branch runs and may use the same bytes.
    """
    end = lives.spans[moved].last
    start = min(last_move + 1, end)
    bases = [(base, blocks[values[base].memory_id].get(base)) for base in lives.moved_from(moved)]
    sources = [(block.last < start, base, block) for base, block in bases if block is not None]
    merged: list[Block] = []
    for ended, base, source in sorted(sources, key=lambda item: item[:2]):
        same = next((block for block in merged if _shares_bytes(block, source)), None)
        if not ended:
            source.last = max(source.last, end)
            merged.append(source)
        elif same is not None:
            _widen(same, values[base])
        else:
            place = (values[base].text, "temporary", source.offset, source.bytes)
            merged.append(Block(moved, values[moved].name, *place, start, end, writer=last_move))
            # The key is the complement of the source's index: each branch may have such a block.
            blocks[values[base].memory_id][~base] = merged[-1]


def _shares_bytes(a: Block, b: Block) -> bool:
    return a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes


def _widen(block: Block, view: Value) -> None:
    end = max(block.offset + block.bytes, view.offset + view.bytes)
    block.offset = min(block.offset, view.offset)
    block.bytes = end - block.offset


def _arena(memory_id: int, size: int, blocks: list[Block]) -> Arena:
    from rushlight.plan.block import Block as Planned
    from rushlight.plan.block import live_bytes

    alignment = _alignment(blocks)
    group = [
        Planned(i, block.bytes, block.first, block.last, memory_id, alignment)
        for i, block in enumerate(blocks)
    ]
    live = live_bytes(group)
    peak_at, peak = max(live, key=lambda entry: (entry[1], -entry[0]), default=(0, 0))
    blocks.sort(key=lambda block: (block.first, block.offset))
    overlap = _overlap(blocks)
    if not overlap:
        peak = min(peak, size)  # the block at the top need not be padded
    return Arena(memory_id, size, peak, peak_at, live, blocks, overlap)


def _alignment(blocks: Sequence[Block]) -> int:
    """The greatest power of two that divides all offsets, at most the planners' default."""
    common = _DEFAULT_ALIGNMENT
    for block in blocks:
        common = math.gcd(common, block.offset)
    return common


def _overlap(blocks: Sequence[Block]) -> list[int]:
    """The first two blocks (as values) that share bytes while both are live.

    A sweep over time with the live blocks sorted by offset; as long as no two collide, a new one
    can only collide with its neighbours.
    """
    events = []
    for i, block in enumerate(blocks):
        if block.bytes:
            events.append((block.first, 0, i))
            events.append((block.last + 1, -1, i))
    live: list[tuple[int, int, int]] = []
    for _, ends, i in sorted(events):
        entry = (blocks[i].offset, blocks[i].offset + blocks[i].bytes, i)
        if ends:
            del live[bisect_left(live, entry)]
            continue
        at = bisect_left(live, entry)
        for start, end, other in live[max(at - 1, 0) : at + 1]:
            if start < entry[1] and entry[0] < end:
                return [blocks[other].value, blocks[i].value]
        insort(live, entry)
    return []


class _Lifetimes:
    """Spans of all tensors of a method.

    Attributes:
        spans: by value; only of values that an instruction uses.
        moved_at: the last move to each value that moves write.
        base: for each view the value whose bytes it shows.
        state: planned values other than inputs that hold data before the method starts.
    """

    def __init__(self, plan: fb.ExecutionPlan, effects: Sequence[Effect]) -> None:
        self._tensors = {
            i: value.val for i, value in enumerate(plan.values) if isinstance(value.val, fb.Tensor)
        }
        self._inputs, self._outputs = set(plan.inputs), set(plan.outputs)
        self._end = max(len(effects) - 1, 0)
        self._loops = _loops(plan)
        self.spans: dict[int, _Span] = defaultdict(_Span)
        self.base: dict[int, int] = {}
        self.state: set[int] = set()
        self.moved_at: dict[int, int] = {}
        self._moves: dict[int, set[int]] = defaultdict(set)
        self._touch(effects)
        self._find_state()
        self._find_views()
        self._extend()

    def owners(self) -> list[int]:
        """Planned values that have memory of their own, in order."""
        return [
            i
            for i in sorted(self.spans)
            if self._planned(i) and i not in self.base and i not in self.moved_at
        ]

    @property
    def filled_before(self) -> set[int]:
        """Values that hold data when the method starts: its inputs and its state."""
        return self._inputs | self.state

    def moved_from(self, value: int) -> set[int]:
        """The values whose bytes moves may have given to `value`."""
        owners: set[int] = set()
        todo = [value]
        seen = set(todo)
        while todo:
            for base in self._moves[todo.pop()]:
                if base in seen:
                    continue
                seen.add(base)
                if base in self.moved_at:
                    todo.append(base)
                else:
                    owners.add(base)
        return owners

    def _planned(self, index: int) -> bool:
        tensor = self._tensors.get(index)
        return tensor is not None and tensor.allocation_info is not None

    def _touch(self, effects: Sequence[Effect]) -> None:
        spans = self.spans
        for index in self._inputs & self._tensors.keys():
            spans[index].first = spans[index].last = 0
        for at, effect in enumerate(effects):
            if effect.shares is not None:
                self._share(*effect.shares, at)
            for index in effect.reads:
                spans[index].read = min(spans[index].read, at)
                spans[index].last = at
            for index in effect.writes:
                spans[index].first = min(spans[index].first, at)
                spans[index].last = max(spans[index].last, at)
        for index in self._outputs & self._tensors.keys():
            spans[index].last = self._end

    def _share(self, value: int, base: int, at: int) -> None:
        """Record a view made by `et_view` or by a move; moves may give it several bases."""
        root = self.base.get(base, base)
        if value == root or value not in self._tensors:
            return
        if self._same_place(value, root) and value not in self.moved_at:
            self.base.setdefault(value, root)
        else:
            self.moved_at[value] = at
            self._moves[value].add(root)

    def _same_place(self, value: int, base: int) -> bool:
        places = [_place(self._tensors[i]) for i in (value, base) if i in self._tensors]
        return len(places) == 2 and None not in places and places[0] == places[1]

    def _find_state(self) -> None:
        """A value that is read before it is written is state; in a loop it may be of the iteration
        before."""
        for index, span in self.spans.items():
            tensor = self._tensors.get(index)
            if tensor is None or tensor.allocation_info is None or index in self._inputs:
                continue
            kept = tensor.data_buffer_idx > 0 or is_named(tensor) or is_external(tensor)
            if not kept and (span.first == _NEVER or span.first < span.read):
                continue
            loop = next((x for x in self._loops if x[0] <= span.read <= x[1]), None)
            if loop is not None and not kept and span.first >= loop[0]:
                span.first = loop[0]
                continue
            self.state.add(index)
            span.first, span.last = 0, self._end

    def _find_views(self) -> None:
        """A value that no instruction writes is a view of the block that was last written there."""
        filled: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for index, span in self.spans.items():
            if self._planned(index) and span.first != _NEVER and index not in self.base:
                since = -1 if index in self.filled_before else span.first
                filled[_place_of(self._tensors[index])].append((since, index))
        for entries in filled.values():
            entries.sort()
        for index in sorted(self.spans):
            span = self.spans[index]
            if not self._planned(index) or span.first != _NEVER:
                continue
            use = span.read if span.read != _NEVER else self._end + 1
            entries = filled.get(_place_of(self._tensors[index]), [])
            at = bisect_right(entries, (use, -1))
            if at > 0:
                self.base[index] = entries[at - 1][1]
            else:  # a buffer that is only read and has no initial content in the file
                self.state.add(index)
                span.first, span.last = 0, self._end

    def _extend(self) -> None:
        """Bases live as long as their views, and values used in a loop live until it ends."""
        for _ in range(2):  # a loop may extend a view, and through it a base that another loop uses
            for start, end in self._loops:
                for span in self.spans.values():
                    if span.first < start <= span.last < end:
                        span.last = end
            for value, base in self.base.items():
                span = self.spans[base]
                span.last = max(span.last, self.spans[value].last)


def _loops(plan: fb.ExecutionPlan) -> list[tuple[int, int]]:
    """(first, last) instruction of every backward jump, inner loops before outer ones."""
    calls = plan.chains[0].instructions if plan.chains else []
    loops = [
        (call.instr_args.destination_instruction, at)
        for at, call in enumerate(calls)
        if isinstance(call.instr_args, fb.JumpFalseCall)
        and call.instr_args.destination_instruction <= at
    ]
    if len(loops) > _MAX_LOOPS:
        return [(min(start for start, _ in loops), max(end for _, end in loops))]
    return sorted(loops, key=lambda loop: loop[1] - loop[0])


def _place(tensor: fb.Tensor) -> tuple[int, int] | None:
    """(memory id, offset) of a planned tensor."""
    info = tensor.allocation_info
    if info is None:
        return None
    return info.memory_id, info.memory_offset_low | info.memory_offset_high << 32


def _place_of(tensor: fb.Tensor) -> tuple[int, int]:
    place = _place(tensor)
    assert place is not None
    return place
