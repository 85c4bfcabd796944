"""Orders in which to place blocks. Each is a heuristic for the blocks that determine the peak.

A strategy is a pure function from a prepared `Placement` to offsets by index. All are cheap and
none is best on every model, so the planner tries them all; `rushlight.plan.search` starts from
the best.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from rushlight.plan.block import live_bytes
from rushlight.plan.placement import Fit, Placement

Strategy = Callable[[Placement], list[int]]


def greedy_by_size(placement: Placement) -> list[int]:
    """Large blocks first, each into the tightest gap; small ones then fill the rest."""
    return _place(placement, order_by_size(placement), "best")


def greedy_by_duration(placement: Placement) -> list[int]:
    """Long-lived blocks first, at the bottom; short-lived ones are placed above them."""
    order = sorted(placement.free, key=lambda i: (-_duration(placement, i), -placement.sizes[i]))
    return _place(placement, order)


def greedy_by_area(placement: Placement) -> list[int]:
    """By bytes times instructions, a block's area in the picture of the plan."""
    order = sorted(placement.free, key=lambda i: -placement.sizes[i] * _duration(placement, i))
    return _place(placement, order)


def greedy_by_breadth(placement: Placement) -> list[int]:
    """The blocks at the instructions with most live bytes first, largest first."""
    return _place(placement, order_by_breadth(placement))


def best_fit_by_start(placement: Placement) -> list[int]:
    """In the order of execution, as an allocator at run time would, into the tightest gap."""
    order = sorted(placement.free, key=lambda i: (placement.blocks[i].start, -placement.sizes[i]))
    return _place(placement, order, "best")


STRATEGIES: dict[str, Strategy] = {
    "greedy by size": greedy_by_size,
    "greedy by breadth": greedy_by_breadth,
    "greedy by area": greedy_by_area,
    "greedy by duration": greedy_by_duration,
    "best fit by start": best_fit_by_start,
}


def order_by_size(placement: Placement) -> list[int]:
    """Free blocks, large before small, at equal size in the order of their start."""
    return sorted(placement.free, key=lambda i: -placement.sizes[i])


def order_by_breadth(placement: Placement) -> list[int]:
    """Free blocks, by the most live bytes during the lifetime of each."""
    instructions, live = zip(*live_bytes(placement.blocks), strict=True)
    crowd = np.array(live)

    def most(index: int) -> int:
        block = placement.blocks[index]
        first = bisect_right(instructions, block.start) - 1
        last = bisect_right(instructions, block.end)
        return int(crowd[first:last].max())

    return sorted(order_by_size(placement), key=lambda i: -most(i))


def _place(placement: Placement, order: list[int], fit: Fit = "first") -> list[int]:
    offsets = placement.place(order, fit=fit)
    assert offsets is not None, "placing gives up only when it has a limit"
    return offsets


def _duration(placement: Placement, index: int) -> int:
    block = placement.blocks[index]
    return block.end - block.start + 1
