"""Planning by passes and algorithms of the user's own, as ExecuTorch's documents describe them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.errors import ExportError
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.graph_passes.out_variants import ToOutVarPass
from rushlight.exir.graph_passes.spec_prop import SpecPropPass
from rushlight.exir.manager import to_edge, to_edge_transform_and_lower
from rushlight.exir.planning.algorithms import (
    MemoryAlgoResult,
    MemoryPlanningAlgorithmSuite,
    SpecAllocResult,
    greedy,
    naive,
)
from rushlight.exir.planning.memory_pass import MemoryPlanningPass
from rushlight.exir.planning.verify_plan import Verifier

aten = torch.ops.aten


class Chain(nn.Module):
    """Products and sums, one after the other, with a buffer that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(8))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            a = a * b + a
        self.total += a
        return a.view(2, 4) * 2


INPUTS = (torch.linspace(-1, 1, 8), torch.linspace(0, 2, 8))


class TwoMemories(MemoryPlanningPass):
    """Sums in memory 2."""

    def run(
        self, graph_module: GraphModule, graph_signature: ExportGraphSignature | None = None
    ) -> PassResult:
        for node in graph_module.graph.nodes:
            if node.target == aten.add.out:
                node.meta["spec"].mem_id = 2
        return super().run(graph_module, graph_signature)


def planned(planning: MemoryPlanningPass) -> Any:
    captured = torch.export.export(Chain(), INPUTS)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    return to_edge(captured).to_executorch(config)


def check_runs(program: Any) -> None:
    module, eager = rl.load(program.buffer), Chain()
    for _ in range(2):
        torch.testing.assert_close(module(*INPUTS), eager(*INPUTS))


def test_a_pass_gives_tensors_memories() -> None:
    program = planned(TwoMemories())
    plan = program.executorch_program.execution_plan[0]
    assert len(plan.non_const_buffer_sizes) == 3
    shown = program.exported_program().graph
    sums = [n.meta["spec"].mem_id for n in shown.nodes if n.target == aten.add.out]
    products = [n.meta["spec"].mem_id for n in shown.nodes if n.target == aten.mul.out]
    assert (set(sums), set(products)) == ({2}, {1})
    check_runs(program)


@pytest.mark.parametrize("algorithm", [greedy, naive])
def test_algorithms_of_a_suite_place_tensors(algorithm: Any) -> None:
    suite = MemoryPlanningAlgorithmSuite([algorithm])
    program = planned(MemoryPlanningPass(suite, alloc_graph_input=False))
    values = program.executorch_program.execution_plan[0].values
    used = program.executorch_program.execution_plan[0].inputs
    assert all(values[i].val.allocation_info is None for i in used)
    check_runs(program)


def test_an_algorithm_of_the_user_is_run_and_checked() -> None:
    def apart(
        alignment: int, specs: Any, module: GraphModule, signature: Any, padding: int
    ) -> MemoryAlgoResult:
        result, end = MemoryAlgoResult({}, [0, 0]), 0
        for spec in specs:
            result.spec_dict[spec] = SpecAllocResult(1, 0, end)
            end += spec.realign(alignment)
        result.bufsizes[1] = end
        return result

    def at_once(*given: Any) -> MemoryAlgoResult:
        result = apart(*given)
        for place in result.spec_dict.values():
            place.mem_offset = 0
        return result

    program = planned(MemoryPlanningPass(MemoryPlanningAlgorithmSuite([apart])))
    check_runs(program)
    with pytest.raises(ExportError, match="share bytes"):
        planned(MemoryPlanningPass(MemoryPlanningAlgorithmSuite([at_once])))


def prepared() -> GraphModule:
    class Four(nn.Module):
        def forward(self, a: torch.Tensor) -> torch.Tensor:
            b = a + a
            c = a * b
            return c * (c + b)

    module = to_edge(torch.export.export(Four(), (torch.ones(1),))).exported_program()
    module = SpecPropPass()(module.graph_module).graph_module
    return ToOutVarPass()(module).graph_module


def test_sizes_are_those_that_executorch_plans() -> None:
    # What ExecuTorch 1.4.1 gives for this graph, alignment 1: five tensors of 4 bytes.
    for algorithm, size, pairs in ((naive, 20, 0), (greedy, 12, 2)):
        module = prepared()
        suite = MemoryPlanningAlgorithmSuite([algorithm])
        MemoryPlanningPass(suite, alignment=1).run(module)
        assert module.meta["non_const_buffer_sizes"] == [0, size]
        verifier = Verifier(module, True, True, True)
        assert verifier.verify_storage_reuse() == pairs
        torch.testing.assert_close(module(torch.tensor([3.0]))[0], torch.tensor([432.0]))


class Own(MemoryPlanningPass):
    """A pass of the user's, which plans as its base does."""

    def run(self, *given: Any) -> PassResult:
        return super().run(*given)


def test_buffers_that_methods_share_lie_in_one_memory() -> None:
    with pytest.raises(ValueError, match="alloc_mutable_buffers"):
        MemoryPlanningPass(share_mutable_buffers=True, alloc_mutable_buffers=False)
    captured = torch.export.export(Chain(), INPUTS)
    planning = TwoMemories(share_mutable_buffers=True)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    with pytest.raises(ExportError, match="memory 2"):
        to_edge({"a": captured, "b": captured}).to_executorch(config)
    config = ExecutorchBackendConfig(memory_planning_pass=Own(share_mutable_buffers=True))
    made = to_edge({"a": captured, "b": captured}).to_executorch(config)
    module, eager = rl.load(made.buffer), Chain()
    for name in "ab":
        torch.testing.assert_close(module[name](*INPUTS), eager(*INPUTS))


class Reader(nn.Module):
    """Returns a buffer that another method writes, and what follows from it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(8))

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.total, (self.total + 1) * 2


@pytest.mark.parametrize("partitioner", [None, CpuPartitioner(), XnnpackPartitioner()])
@pytest.mark.parametrize("kind", [MemoryPlanningPass, Own])
def test_a_method_reads_state_that_another_one_writes(
    kind: type[MemoryPlanningPass], partitioner: Any
) -> None:
    programs = {
        "forward": torch.export.export(Chain(), INPUTS),
        "total": torch.export.export(Reader(), ()),
    }
    planning = kind(share_mutable_buffers=True)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    lowered = to_edge_transform_and_lower(programs, partitioner=partitioner)
    module, eager = rl.load(lowered.to_executorch(config).buffer), Chain()
    assert module["total"]()[1].tolist() == [2.0] * 8
    for _ in range(2):
        module(*INPUTS), eager(*INPUTS)
        total, more = module["total"]()
        torch.testing.assert_close(torch.as_tensor(total), eager.total)
        torch.testing.assert_close(torch.as_tensor(more), (eager.total + 1) * 2)


def naively(*given: Any) -> list[int]:
    return MemoryPlanningAlgorithmSuite([naive])(*given)


class Sum(nn.Module):
    """Adds to a buffer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += x
        return self.total * 2


def two_methods(planning: Any, sizes: tuple[int, int] = (4, 4)) -> Any:
    programs = {f"m{n}": torch.export.export(Sum(s), (torch.ones(s),)) for n, s in enumerate(sizes)}
    return to_edge(programs).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))


def test_buffers_that_cannot_be_shared_are_refused() -> None:
    one = MemoryPlanningPass(naively, share_mutable_buffers=True)
    with pytest.raises(ExportError, match="'total' has 16 bytes in one method and 64 in another"):
        two_methods(one, (4, 16))
    other = MemoryPlanningPass(share_mutable_buffers=True)
    with pytest.raises(ExportError, match="one and the same pass"):
        two_methods({"m0": one, "m1": other})
    module = rl.load(two_methods(one).buffer)  # nothing is left of what failed
    assert [module[name](torch.ones(4)).tolist() for name in ("m0", "m1")] == [[2.0] * 4, [4.0] * 4]


def test_methods_that_fail_are_forgotten() -> None:
    class Fails(MemoryPlanningPass):
        is_failing = True

        def run(self, *given: Any) -> PassResult:
            result = super().run(*given)
            if self.is_failing:
                raise ExportError("not yet")
            return result

    planning = Fails(share_mutable_buffers=True)
    with pytest.raises(ExportError, match="not yet"):
        two_methods(planning, (16, 16))
    planning.is_failing = False
    assert (
        two_methods(planning).executorch_program.execution_plan[0].non_const_buffer_sizes[2] == 16
    )


def test_run_multimethod_of_the_user_is_called() -> None:
    called = []

    class Own(MemoryPlanningPass):
        def run_multimethod(self) -> None:
            called.append(self)
            super().run_multimethod()

    two_methods(Own())
    assert len(called) == 1


class Either(nn.Module):
    """Has branches with constants, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cond(
            x.sum() > 0, lambda a: (a * 2 + 1).relu() - 3, lambda a: (a - 1).sin() * 4, (x,)
        )
        self.total += y
        return self.total + y


@pytest.mark.parametrize("algorithm", [None, naively])
def test_branches_with_constants_are_planned(algorithm: Any) -> None:
    x = torch.tensor([1.0, -2.0, 3.0, 0.5])
    edge = to_edge(torch.export.export(Either(), (x,)))
    planning = MemoryPlanningPass(algorithm)
    made = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    inputs = made.exported_program().graph.find_nodes(op="placeholder")
    assert len({node.target for node in inputs}) == len(inputs)
    module, eager = rl.load(made.buffer), Either()
    for one in (x, -x, x):
        torch.testing.assert_close(module(one), eager(one))


class SameOutputs(nn.Module):
    """Returns an input, and one value by two names."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return y, x, y.view(-1), x * 3


@pytest.mark.parametrize("algorithm", [None, naively])
def test_outputs_that_share_memory_are_placed_even_if_others_are_not(algorithm: Any) -> None:
    x = torch.ones(2, 4)
    planning = MemoryPlanningPass(algorithm, alloc_graph_output=False)
    edge = to_edge(torch.export.export(SameOutputs(), (x,)))
    made = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    plan = made.executorch_program.execution_plan[0]
    placed = [plan.values[at].val.allocation_info is not None for at in plan.outputs]
    assert placed == [True, True, True, False]


def test_buffers_without_memory_have_no_initial_value() -> None:
    """Real ExecuTorch takes a tensor with data and no memory for a constant."""
    chain = Chain()
    chain.total += 1
    edge = to_edge(torch.export.export(chain, INPUTS))
    planning = MemoryPlanningPass(alloc_mutable_buffers=False)
    made = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    with pytest.raises(rl.RunError, match="has no memory"):
        rl.load(made.buffer)(*INPUTS)


def test_a_finished_program_keeps_its_initial_state() -> None:
    chain = Chain()
    chain.total += 1
    edge = to_edge(torch.export.export(chain, INPUTS))
    first, second = edge.to_executorch(), edge.to_executorch()
    before = first.buffer
    chain(*INPUTS)
    assert second.buffer == before
