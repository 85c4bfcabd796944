"""plan_methods: lifetimes of real graphs, memory ids, shared buffers, no overlap of the living."""

import pytest
import torch
from benchmarks.models import TINY, build
from graphs import captured

from rushlight.edge import ExecutorchBackendConfig, MemoryPlanningPass
from rushlight.errors import ExportError
from rushlight.ir.alloc import alloc
from rushlight.ir.spec import TensorSpec
from rushlight.lower.method import LoweredMethod, spec_of
from rushlight.pipeline import to_edge


def _methods(edge, **options) -> dict[str, LoweredMethod]:  # type: ignore[no-untyped-def]
    config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(**options))
    manager = edge.to_executorch(config)
    return {name: manager.lowered_method(name) for name in manager.methods}


def _assert_no_overlap(method: LoweredMethod) -> int:
    """Walk the instructions as a run does, and check that a write never hits a value still needed.

    This recomputes who needs what from the graph alone, without the planner's lifetimes.
    """
    calls = [n for n in method.graph.nodes if n.op == "call_function" and n.target is not alloc]
    last: dict[TensorSpec, int] = {}
    for at, node in enumerate(calls):
        for used in node.all_input_nodes:
            if (spec := spec_of(used)) is not None:
                last[spec.storage] = at
    for node in (*method.outputs, *method.buffers):
        if isinstance(node, torch.fx.Node) and (spec := spec_of(node)) is not None:
            last[spec.storage] = len(calls)
    live = {s.storage for n in (*method.inputs, *method.buffers) if (s := spec_of(n))}
    checked = 0
    for at, node in enumerate(calls):
        written = {s.storage for o in node.meta.get("outs", []) if (s := spec_of(o))}
        for spec in written:
            for other in live | written:
                if other is spec or last.get(other, -1) < at or spec.mem_id != other.mem_id:
                    continue
                apart = (
                    spec.mem_offset + spec.nbytes <= other.mem_offset
                    or other.mem_offset + other.nbytes <= spec.mem_offset
                )
                assert apart, f"{node.name} writes {spec} over {other}, needed at {last[other]}"
                checked += 1
        live |= written
        live = {s for s in live if last.get(s, -1) > at}
    return checked


@pytest.mark.parametrize("name", sorted(TINY))
def test_no_two_live_tensors_overlap(name: str) -> None:
    method = _methods(to_edge(build(name).export()))["forward"]
    assert _assert_no_overlap(method) > 10
    assert method.arenas[0] <= 1.02 * method.plan_stats[1][1]


def test_tensors_go_to_the_memories_they_are_given() -> None:
    program = captured(lambda x: (x.sin().cos() @ x.t()).exp(), torch.randn(32, 8))
    methods = _methods(to_edge(program), memory_id_of=lambda spec: 3 if spec.nbytes > 1024 else 1)
    method = methods["forward"]
    specs = [s for n in method.graph.nodes if (s := spec_of(n))]
    assert {s.mem_id for s in specs} == {1, 3}
    assert all(s.mem_id == 3 for s in specs if s.nbytes > 1024)
    assert len(method.arenas) == 3 and method.arenas[1] == 0 and method.arenas[2] > 0
    assert _assert_no_overlap(method) > 0
    with pytest.raises(ExportError, match=r"memory_id_of gave 0 .* ids count from 1"):
        _methods(to_edge(program), memory_id_of=lambda spec: 0)


class _Counter(torch.nn.Module):
    def __init__(self, increment: float) -> None:
        super().__init__()
        self.increment = increment
        self.register_buffer("count", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x * self.increment)
        return self.count * 1.0


def test_shared_buffers_lie_at_one_place_in_memory_two() -> None:
    x = torch.ones(8)
    edge = to_edge({"up": captured(_Counter(1.0), x), "down": captured(_Counter(-1.0), x)})
    methods = _methods(edge, share_mutable_buffers=True)
    places = set()
    for method in methods.values():
        (node,) = method.buffers
        places.add((spec_of(node).mem_id, spec_of(node).mem_offset))  # type: ignore[union-attr]
        assert method.arenas[1] == 32
        assert _assert_no_overlap(method) > 0
    assert places == {(2, 0)}


def test_a_users_planner_is_used_and_checked() -> None:
    program = captured(lambda x: x.sin().cos().exp(), torch.randn(8))

    def in_a_row(blocks):  # type: ignore[no-untyped-def]
        return {b.id: 64 * i for i, b in enumerate(blocks)}

    method = _methods(to_edge(program), memory_planning_algo=in_a_row)["forward"]
    assert method.plan_stats[1][0] == "in_a_row"
    with pytest.raises(ExportError, match="share bytes while both live"):
        _methods(to_edge(program), memory_planning_algo=lambda bs: {b.id: 0 for b in bs})


@pytest.mark.parametrize("alignment", [1, 64])
def test_alignment(alignment: int) -> None:
    program = captured(lambda x: x.sin().cos().exp(), torch.randn(3))
    method = _methods(to_edge(program), alignment=alignment)["forward"]
    assert all(s.mem_offset % alignment == 0 for n in method.graph.nodes if (s := spec_of(n)))
    with pytest.raises(ExportError, match="power of two, got 12"):
        MemoryPlanningPass(alignment=12)
