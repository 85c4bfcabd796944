"""The memory planner on graphs of real architectures: at most 2 % above the lower bound."""

from __future__ import annotations

import pytest
from benchmarks.models import FULL, TINY, build

import rushlight

EVERY_MODEL = [*TINY, *(pytest.param(name, marks=pytest.mark.full) for name in FULL)]


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_plans_are_near_the_lower_bound(name: str) -> None:
    manager = rushlight.to_edge_transform_and_lower(build(name).export()).to_executorch()
    method = manager.lowered_method("forward")
    (arena,) = method.arenas
    (_, bound) = method.plan_stats[1]
    assert 0 < bound <= arena <= 1.02 * bound
