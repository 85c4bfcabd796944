"""Memory planning: lifetimes in, offsets out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rushlight.errors import Code, ExportError
from rushlight.plan.block import (
    Block,
    BlockId,
    Plan,
    Planner,
    arena_sizes,
    by_memory,
    check_plan,
    lower_bound,
)
from rushlight.plan.placement import Placement
from rushlight.plan.search import improve
from rushlight.plan.strategies import STRATEGIES, Strategy
from rushlight.plan.sweep import overlaps, place_by_start

SEARCH_BUDGET = 1_000_000
"""Pairs of neighbours that the search may compare in each memory: about 0.3 s."""

MAX_PAIRS = 1_000_000
"""Pairs of neighbours in one memory above which strategies and the search are left out."""

_SHARES = (0.5, 0.25, 0.25)
"""The shares of the search budget for the best strategies' plans, from which a search starts."""

_GOOD_ENOUGH = 1.001
"""The search is left out, or ends, within this factor of the lower bound."""


@dataclass(frozen=True)
class _Attempt:
    size: int
    strategy: str
    offsets: list[int]


def plan_memory(
    blocks: Sequence[Block],
    *,
    planner: Planner | None = None,
    strategies: Mapping[str, Strategy] = STRATEGIES,
    search_budget: int = SEARCH_BUDGET,
) -> Plan:
    """Choose an offset for every block, so that blocks that live together share no byte.

    Every memory is planned by itself: by each strategy in turn until one reaches the lower bound,
    else by a search that starts from the best plans. Equal blocks always get an equal plan.

    Args:
        blocks: what to place; values that alias each other must have been merged into one block.
        planner: the caller's own planner, used instead of the strategies and the search.
        strategies: the strategies to try, by name.
        search_budget: the most work of the search, in comparisons of neighbours; 0 leaves it out.

    Raises:
        ExportError: two blocks have one id, or `planner` returned a plan that cannot be used.
    """
    _check_ids(blocks)
    bound = lower_bound(blocks)
    if planner is not None:
        offsets = dict(planner(blocks))
        name = getattr(planner, "__name__", type(planner).__name__)
    else:
        offsets, names = {}, {}
        for memory_id, group in by_memory(blocks).items():
            placed, names[memory_id] = _plan_group(
                group, bound[memory_id], strategies, search_budget
            )
            offsets.update(placed)
        name = ", ".join(dict.fromkeys(names.values()))
    sizes = arena_sizes(blocks, offsets)
    check_plan(blocks, offsets, sizes)
    return Plan({block.id: offsets[block.id] for block in blocks}, sizes, name, bound)


def _plan_group(
    group: Sequence[Block], target: int, strategies: Mapping[str, Strategy], budget: int
) -> tuple[dict[BlockId, int], str]:
    """Plan the blocks of one memory; returns offsets and the name of the strategy."""
    if overlaps(group) > MAX_PAIRS:
        offsets = place_by_start(group)
        return {b.id: o for b, o in zip(group, offsets, strict=True)}, "best fit by start"
    placement = Placement(group)
    attempts: list[_Attempt] = []
    for name, strategy in strategies.items():
        offsets = strategy(placement)
        attempts.append(_Attempt(placement.top(offsets), name, offsets))
        if attempts[-1].size <= target:
            break
    attempts.sort(key=lambda attempt: attempt.size)
    best, enough = attempts[0], int(target * _GOOD_ENOUGH)
    for start, share in zip(attempts, _SHARES, strict=False):
        if best.size <= enough or budget == 0:
            break
        offsets = improve(placement, start.offsets, enough, int(budget * share))
        improved = _Attempt(placement.top(offsets), f"search from {start.strategy}", offsets)
        best = min(best, improved, key=lambda attempt: attempt.size)
    return {b.id: o for b, o in zip(group, best.offsets, strict=True)}, best.strategy


def _check_ids(blocks: Sequence[Block]) -> None:
    seen: set[BlockId] = set()
    for block in blocks:
        if block.id in seen:
            raise ExportError(
                f"cannot plan memory: two blocks are called {block.id!r}; ids must be unique",
                code=Code.INVALID_ARGUMENT,
            )
        seen.add(block.id)
