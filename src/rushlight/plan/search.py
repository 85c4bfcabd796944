"""Improving a plan by local search over the order of placement.

If the blocks of any plan are placed again in the order of their offsets, each at the lowest free
address, none gets a higher offset. So a plan can be represented by an order. The block at the top
rests on a stack of blocks that touch each other; placing one of these before a block that is in its
way may lower the stack. Moves that keep the top are accepted too, since improvements are often
reached only across a plateau.
"""

from __future__ import annotations

from random import Random

from rushlight.plan.placement import Placement

SEED = 0x5EED


def improve(placement: Placement, offsets: list[int], target: int, budget: int) -> list[int]:
    """Search for a smaller plan, beginning at `offsets`.

    Args:
        placement: the blocks.
        offsets: a valid plan, by index.
        target: stop when the plan is no larger than this many bytes (the lower bound).
        budget: the most work, in comparisons of neighbours. It counts work and not time, so that
            equal blocks always get an equal plan.

    Returns:
        offsets of the best plan found; never a larger one.
    """
    climber = _Climber(placement, offsets)
    if not placement.free:
        return climber.offsets
    while climber.top > target and climber.work < budget:
        climber.move()
    return climber.offsets


class _Climber:
    """The state of a search: an order and its plan."""

    def __init__(self, placement: Placement, offsets: list[int]) -> None:
        self._placement = placement
        self._random = Random(SEED)
        self._order = sorted(placement.free, key=lambda i: offsets[i])
        self.work = 0
        placed = placement.place(self._order)
        assert placed is not None, "placing gives up only when it has a limit"
        self.offsets = placed
        self.top = placement.top(placed)

    def move(self) -> None:
        """Change the order in one place; keep the change unless the plan grows."""
        position = {index: at for at, index in enumerate(self._order)}
        moved = self._random.choice(self._stack())
        before = [i for i in self._placement.neighbours(moved) if position[i] < position[moved]]
        self.work += len(self._order)
        if not before:
            return
        to = position[self._random.choice(before)]
        order = self._order.copy()
        order.insert(to, order.pop(position[moved]))
        offsets = self._placement.new_offsets()
        for index in order[:to]:
            offsets[index] = self.offsets[index]
        self.work += sum(len(self._placement.neighbours(i)) for i in order[to:])
        placed = self._placement.place(order[to:], limit=self.top, offsets=offsets)
        if placed is not None:
            self._order, self.offsets = order, placed
            self.top = self._placement.top(placed)

    def _stack(self) -> list[int]:
        """A block that reaches the top, and the blocks below it that touch each other."""
        sizes, offsets = self._placement.sizes, self.offsets
        tops = [i for i in self._placement.free if offsets[i] + sizes[i] == self.top]
        if not tops:
            return self._placement.free
        stack = [self._random.choice(tops)]
        seen = set(stack)
        for block in stack:
            for below in self._placement.neighbours(block):
                if below not in seen and offsets[below] + sizes[below] == offsets[block]:
                    seen.add(below)
                    stack.append(below)
        return stack
