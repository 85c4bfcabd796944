"""Delegation of control flow, and of programs with dynamic shapes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops import scan, while_loop
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase, any_chain

import rushlight as rl
from delegated_models import arrays, runs_like
from delegates import calls_of, flat, lowered_modules, taking
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    generate_pattern_op_partitions,
    get_control_flow_submodules,
    get_lowered_submodules,
    get_non_lowered_nodes,
    to_backend,
)

# --- control flow --------------------------------------------------------------------------------


def _yes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x - y) + y - y


def _no(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.mm(x - y, y) - y


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x + y
        x = torch.cond(x[0][0] == 1, _yes, _no, [x, y])
        return x - y


@pytest.mark.parametrize("first", [1.0, 2.0])
def test_branches_are_partitioned(first: float) -> None:
    args = torch.full((2, 2), first - 1), torch.ones(2, 2)
    manager = rl.to_edge(torch.export.export(Branches(), args))
    lowered = manager.to_backend(taking("aten.add", "aten.mm"))
    program = lowered.exported_program()
    assert [calls_of(m) for m in lowered_modules(program)] == [["add.Tensor"]]
    inner = get_control_flow_submodules(program.graph_module)
    assert [calls_of(lowered_modules(m)[0]) for _, m, _ in inner] == [
        ["add.Tensor"],
        ["mm.default"],
    ]
    torch.testing.assert_close(program.module()(*args), Branches()(*args))
    runs_like(Branches(), lowered, *args)


class Deep(torch.nn.Module):
    def forward(self, x: Any, pred1: Any, pred2: Any, y: Any) -> torch.Tensor:
        def yes(x: torch.Tensor, pred2: torch.Tensor) -> torch.Tensor:
            def yes_yes(y: torch.Tensor) -> torch.Tensor:
                y = y + y
                return torch.mm(y, y)

            def yes_no(y: torch.Tensor) -> torch.Tensor:
                return torch.mm(y, y)

            return x + torch.cond(pred2, yes_yes, yes_no, [x])

        def no(x: torch.Tensor, pred2: torch.Tensor) -> torch.Tensor:
            return torch.mm(x, x)

        x = x.cos() + y
        return torch.cond(pred1, yes, no, [x, pred2]).sin()


DEEP = (torch.ones(2, 2), torch.tensor([True]), torch.tensor([False]), torch.ones(2, 2))


def test_branches_of_branches_are_partitioned() -> None:
    manager = rl.to_edge(torch.export.export(Deep(), DEEP))
    lowered = manager.to_backend(taking("aten.add", "aten.mm"))

    def tree(module: Any) -> Any:
        inner = [tree(m) for _, m, _ in get_control_flow_submodules(module)]
        return [calls_of(m) for _, m, _ in get_lowered_submodules(module)], inner

    assert tree(lowered.exported_program().graph_module) == (
        [["add.Tensor"]],
        [
            ([["add.Tensor"]], [([["add.Tensor", "mm.default"]], []), ([["mm.default"]], [])]),
            ([["mm.default"]], []),
        ],
    )
    runs_like(Deep(), lowered, *DEEP)


def _until(limit: float) -> Any:
    return lambda y: (y + 1).sum() < limit


class Loops(torch.nn.Module):
    """Loops whose conditions and bodies are loops and branches themselves."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor) -> Any:
        return getattr(self, self.name)(x)

    def condition(self, x: torch.Tensor) -> Any:
        return while_loop(_until(60), lambda y: (y + y + 1,), (x,))

    def branch_inside(self, x: torch.Tensor) -> Any:
        def body(y: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.cond(y.sum() > 20, lambda y: y + y, lambda y: y + 3, (y,)),)

        return while_loop(_until(60), body, (x,))

    def inside_a_branch(self, x: torch.Tensor) -> Any:
        return torch.cond((x + 1).sum() > 0, lambda y: self.condition(y)[0], lambda y: y + 1, (x,))

    def inside_a_loop(self, x: torch.Tensor) -> Any:
        def body(y: torch.Tensor) -> tuple[torch.Tensor]:
            return (self.branch_inside(y)[0] + 5,)

        return while_loop(_until(200), body, (x,))

    def inside_a_scan(self, x: torch.Tensor) -> Any:
        def body(carried: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.condition(row)[0] + carried, row + carried

        return scan(body, torch.zeros(2), x)


@pytest.mark.parametrize(
    "name", ["condition", "branch_inside", "inside_a_branch", "inside_a_loop", "inside_a_scan"]
)
def test_conditions_of_loops_are_partitioned(name: str) -> None:
    """The graph of a condition returns one value, not a sequence."""
    model, x = Loops(name), torch.ones(2, 2)
    manager = rl.to_edge(torch.export.export(model, (x,)))
    lowered = manager.to_backend(taking("aten.add"))
    runs_like(model, lowered, x)


class Cond(OperatorSupportBase):
    def is_node_supported(self, submodules: object, node: Node) -> bool:
        return node.op == "call_function" and node.target is torch.ops.higher_order.cond


def test_control_flow_is_taken_whole_and_partitioned_by_the_backend_itself() -> None:
    """`preprocess` calls `to_backend`, as in ExecuTorch's test of nested backends."""

    class Second(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            names = [str(n.target) for n in edge_program.graph.nodes if n.op == "call_function"]
            return PreprocessResult(";".join(names).encode())

    class First(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            parts = to_backend(edge_program, taking("aten.add", "aten.mm", backend="Second"))
            return PreprocessResult(show(parts.graph_module).encode())

    def show(module: Any) -> str:
        branches = get_control_flow_submodules(module)
        text = [m.processed_bytes.decode() for _, m, _ in get_lowered_submodules(module)]
        return "|".join([*text, *(f"({show(m)})" for _, m, _ in branches)])

    class TakesCond(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            support = any_chain(taking("aten.add", "aten.mm")._support, Cond())
            module = exported_program.graph_module
            tags = {}
            for partition in generate_pattern_op_partitions(module, op_support=support):
                tag = f"first_{partition.id}"
                tags[tag] = DelegationSpec("First", [])
                for node in partition.nodes:
                    node.meta["delegation_tag"] = tag
                    if node.target is torch.ops.higher_order.cond:
                        for branch in node.args[1:3]:
                            branch.meta["delegation_tag"] = tag
            return PartitionResult(exported_program, tags)

    manager = rl.to_edge(torch.export.export(Deep(), DEEP))
    lowered = manager.to_backend(TakesCond())
    program = lowered.exported_program()
    [module] = lowered_modules(program)
    assert module.processed_bytes == (
        b"aten.add.Tensor|"
        b"(aten.add.Tensor|(aten.add.Tensor;aten.mm.default)|(aten.mm.default))|"
        b"(aten.mm.default)"
    )
    torch.testing.assert_close(program.module()(*DEEP), Deep()(*DEEP))


def test_a_delegate_that_computes_a_branch() -> None:
    manager = rl.to_edge(torch.export.export(Deep(), DEEP))
    lowered = manager.to_backend(taking("aten", "cond"))
    assert not get_non_lowered_nodes(lowered.exported_program().graph)
    runs_like(Deep(), lowered, *DEEP)


# --- shapes --------------------------------------------------------------------------------------


def _dynamic(model: torch.nn.Module, *args: Any) -> rl.EdgeProgramManager:
    batch = torch.export.Dim("batch", min=2, max=16)
    shapes = tuple({0: batch} for _ in args)
    return rl.to_edge(torch.export.export(model, args, dynamic_shapes=shapes))


class Grows(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.cat([x, y])
        return z.reshape(z.shape[0] * 2, -1).sin() + 1


@pytest.mark.parametrize(
    "names", [("aten.cat",), ("aten.sin", "aten.add"), ("aten.view", "aten.s")]
)
def test_dynamic_shapes(names: tuple[str, ...]) -> None:
    lowered = _dynamic(Grows(), torch.randn(3, 4), torch.randn(3, 4)).to_backend(taking(*names))
    assert lowered_modules(lowered.exported_program())
    module = rl.load(lowered.to_executorch().buffer)
    for size in (2, 9, 16):
        args = torch.randn(size, 4), torch.randn(size, 4)
        [actual] = flat(module(*arrays(args)))
        torch.testing.assert_close(actual, Grows()(*args))


def test_sizes_are_inputs_of_a_delegate_and_never_outputs() -> None:
    manager = _dynamic(Grows(), torch.randn(3, 4), torch.randn(3, 4))
    everything = manager.to_backend(taking("aten", "_operator", "<built-in", "mul", "math"))
    for module in lowered_modules(everything.exported_program()):
        returned = module.original_module.graph.output_node().args[0]
        assert all(isinstance(n.meta["val"], torch.Tensor) for n in returned)
    actual = rl.load(everything.to_executorch().buffer)
    args = torch.randn(5, 4), torch.randn(5, 4)
    torch.testing.assert_close(flat(actual(*arrays(args)))[0], Grows()(*args))


def test_outputs_that_become_items_of_a_list() -> None:
    """The runtime recognises a delegate's outputs: the arguments that have no value so far."""

    class Halves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            left, right = x.split(2, dim=1)
            return torch.cat([right, left * 2, right], dim=1)

    manager = _dynamic(Halves(), torch.randn(3, 4)).to_backend(taking("aten.split"))
    module = rl.load(manager.to_executorch().buffer)
    for size in (2, 16):
        x = torch.randn(size, 4)
        torch.testing.assert_close(flat(module(x.numpy()))[0], Halves()(x))
