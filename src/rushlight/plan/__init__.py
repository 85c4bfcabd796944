"""Memory planning: from the lifetimes of values to offsets in arenas. Knows no graph and no torch.

plan = plan_memory([Block("a", 256, 0, 1), Block("b", 128, 1, 3), Block("c", 256, 2, 3)])
plan.offsets["c"], plan.sizes[1], plan.lower_bound[1]
"""

from rushlight.plan.block import (
    Block,
    BlockId,
    Plan,
    Planner,
    arena_sizes,
    check_plan,
    live_bytes,
    lower_bound,
)
from rushlight.plan.planner import SEARCH_BUDGET, plan_memory
from rushlight.plan.report import MemoryReport, PlacedBlock, report_plan
from rushlight.plan.strategies import STRATEGIES, Strategy

__all__ = [
    "SEARCH_BUDGET",
    "STRATEGIES",
    "Block",
    "BlockId",
    "MemoryReport",
    "PlacedBlock",
    "Plan",
    "Planner",
    "Strategy",
    "arena_sizes",
    "check_plan",
    "live_bytes",
    "lower_bound",
    "plan_memory",
    "report_plan",
]
