"""Inspection infers from a file alone the same lifetimes and places that the planner used."""

from __future__ import annotations

import pytest
from benchmarks.flow_models import CASES
from benchmarks.models import build

import rushlight as rl
from rushlight.edge import MemoryPlanningPass
from rushlight.inspect import report_of
from rushlight.plan.methods import lifetimes

MODELS = ("add", "counter", "dict_out", "mlp_dynamic", "lstm2_tiny", "gpt2_tiny", "unet_tiny")


@pytest.mark.parametrize("name", MODELS)
def test_blocks_and_lower_bound_are_the_planners(name: str) -> None:
    exported = build(name).export()
    manager = rl.to_edge_transform_and_lower(exported).to_executorch()
    method = manager.lowered_method()
    report = report_of(manager.buffer)
    (arena,) = report.methods[0].arenas
    planned = {
        (spec.mem_offset, spec.nbytes, first, last)
        for spec, (first, last) in lifetimes(method, MemoryPlanningPass()).items()
    }
    assert {(b.offset, b.bytes, b.first, b.last) for b in arena.blocks} == planned
    assert arena.lower_bound == method.plan_stats[1][1] and arena.bytes == method.arenas[0]
    assert arena.overlap == [] and sum(report.by_kind.values()) == len(manager.buffer)


@pytest.mark.parametrize("name", CASES)
def test_no_live_blocks_overlap_in_programs_with_jumps(name: str) -> None:
    case = CASES[name]
    exported = rl.export(
        case.model().eval(), case.calls()[0], dynamic_shapes=case.dynamic_shapes, verify=False
    )
    arenas = report_of(exported.buffer).methods[0].arenas
    assert arenas
    for arena in arenas:
        assert arena.overlap == []
