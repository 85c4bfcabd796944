"""Tests of graphs that are spelled with ExecuTorch's operators."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.backends.demo import AddMulPartitionerDemo
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.edge.operators import EdgeOpOverload, is_spelled, ops, plain
from rushlight.exir.manager import to_edge, to_edge_transform_and_lower
from rushlight.exir.operators import bind_pattern_to_op
from rushlight.partition import (
    DelegationSpec,
    Partitioner,
    PartitionResult,
    tag_constant_data,
    to_backend,
)

ADD, EDGE_ADD = torch.ops.aten.add.Tensor, ops.edge.aten.add.Tensor
X = torch.tensor([1.0, 2.0])


class Sum(nn.Module):
    """Two calls of one operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x + x


def exported() -> ExportedProgram:
    return torch.export.export(Sum(), (X,))


def test_operators_equal_torchs_in_both_directions() -> None:
    assert EDGE_ADD == ADD and ADD == EDGE_ADD and torch.ops.aten.sub.Tensor != EDGE_ADD
    assert {ADD: 1}[EDGE_ADD] == {EDGE_ADD: 1}[ADD] == 1
    assert EDGE_ADD is ops.edge.aten.add.Tensor and isinstance(EDGE_ADD, EdgeOpOverload)
    assert EDGE_ADD.__name__ == "aten.add.Tensor"
    assert EDGE_ADD._schema == ADD._schema
    assert EDGE_ADD.to_out_variant() == torch.ops.aten.add.out
    assert torch.equal(EDGE_ADD(X, X), X + X)
    assert pickle.loads(pickle.dumps(EDGE_ADD)) is EDGE_ADD
    of_backends = ops.backend.aten.add.Tensor
    assert pickle.loads(pickle.dumps(of_backends)) is of_backends is not EDGE_ADD
    with pytest.raises(AttributeError):
        ops.edge.aten.no_such_operator.default  # noqa: B018


def test_programs_have_executorchs_names_and_still_become_files() -> None:
    edge = to_edge(exported())
    program = edge.exported_program()
    assert (
        program.graph_module.code.count("executorch_exir_dialects_edge__ops_aten_add_Tensor") == 2
    )
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert [n.name for n in calls] == ["aten_add_tensor", "aten_add_tensor_1"]
    assert program.graph_signature.user_outputs == ("aten_add_tensor_1",)
    assert torch.equal(program.module()(X), 3 * X)
    assert edge.to_executorch().buffer
    assert is_spelled(edge.exported_program())
    assert not is_spelled(plain(program))


def test_nodes_are_named_as_fx_names_them() -> None:
    class Names(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, 0).sum(0, keepdim=True) ** 2

    program = to_edge(torch.export.export(Names(), (X,))).exported_program()
    calls = [n.name for n in program.graph.nodes if n.op == "call_function"]
    # What FX would call them.
    graph = torch.fx.Graph()
    for node in program.graph.nodes:
        if node.op == "call_function":
            graph.create_node("call_function", node.target)
    assert calls == [n.name for n in graph.nodes]
    assert calls[:2] == ["aten__softmax_default", "aten_sum_dim_int_list"]


def test_code_is_spelled_after_a_partitioner_that_takes_nothing() -> None:
    edge = to_edge_transform_and_lower(exported(), partitioner=[TakesNothing()])
    code = edge.exported_program().graph_module.code
    assert code.count("executorch_exir_dialects_edge__ops_aten_add_Tensor") == 2


class TakesNothing(AddMulPartitionerDemo):
    """A partitioner of ours without partitions."""

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        return PartitionResult(exported_program, {})


def test_dynamo_traces_operators_by_their_names() -> None:
    class Named(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ops.edge.aten.atan2.default(x, x)

    traced = torch.export.export(Named(), (X,), strict=True)
    assert torch.equal(traced.module()(X), torch.atan2(X, X))


def test_passes_are_given_and_may_write_executorchs_operators() -> None:
    def to_products(module: GraphModule) -> PassResult:
        for node in module.graph.nodes:
            if isinstance(node.target, EdgeOpOverload) and node.target.__name__.endswith(
                "d.Tensor"
            ):
                node.target = ops.edge.aten.mul.Tensor
        return PassResult(module, True)

    edge = to_edge_transform_and_lower(exported(), transform_passes=[to_products])
    assert torch.equal(edge.exported_program().module()(X), X * X * X)
    assert edge.to_executorch().buffer


class ByName(Partitioner):
    """Takes additions, by the names that ExecuTorch gives operators."""

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        spec = DelegationSpec("BackendWithCompilerDemo", [])
        for node in exported_program.graph.nodes:
            if getattr(node.target, "__name__", "") == "aten.add.Tensor":
                node.meta["delegation_tag"] = "tag"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, {"tag": spec})


@pytest.mark.parametrize("partitioner", [XnnpackPartitioner(), AddMulPartitionerDemo(), ByName()])
def test_partitioners_of_both_kinds_take_the_calls(partitioner: Partitioner) -> None:
    lowered = to_edge(exported()).to_backend(partitioner).exported_program()
    assert "executorch_call_delegate" in lowered.graph_module.code
    assert "add_Tensor" not in lowered.graph_module.code
    assert (
        "executorch_call_delegate"
        in to_backend(to_edge(exported()).exported_program(), partitioner).graph_module.code
    )


def test_a_function_is_the_meaning_of_a_backends_operator() -> None:
    library = torch.library.Library("exir_test", "DEF")

    @bind_pattern_to_op(library, "add_relu(Tensor a, Tensor b) -> Tensor")
    def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a + b)

    bound = ops.backend.exir_test.add_relu.default
    assert torch.equal(bound(X, -3 * X), torch.zeros(2))
    assert bound == torch.ops.exir_test.add_relu.default
    assert bound.equivalent_callable is add_relu
