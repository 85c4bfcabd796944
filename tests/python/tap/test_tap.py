"""Taps: which values are returned, that they are eager's, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, ExportedProgram

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.errors import ExportError
from rushlight.tap import (
    FULL_TENSOR,
    STATS,
    NodeSelector,
    Reducer,
    select_all,
    select_all_call_function,
    select_any,
    select_by_module_class,
    select_by_module_path,
    select_by_op_type,
    select_not,
    tap_compare,
    tap_outputs,
)

PARTITIONERS = {"portable": None, "cpu": CpuPartitioner(), "xnnpack": XnnpackPartitioner()}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) * 2


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x.softmax(-1)


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = x * 2
        y.add_(1)  # after the product's value is tapped
        self.total.add_(y)
        return {"sum": self.total + 0, "top": torch.topk(y, 2)[0]}


def captured(model: nn.Module, *args: Any, **options: Any) -> ExportedProgram:
    torch.manual_seed(0)
    return torch.export.export(model.eval(), args, **options)


def names(program: ExportedProgram, selector: NodeSelector) -> list[str]:
    return [tap.node_name for tap in tap_outputs(program, selector)[1]]


def run(tapped: ExportedProgram, *args: torch.Tensor, backend: str = "portable") -> list[Any]:
    edge = rl.to_edge_transform_and_lower(tapped, partitioner=PARTITIONERS[backend])
    return rl.load(edge.to_executorch().buffer)["forward"].call_flat(args, {})


def test_selectors() -> None:
    program = captured(Network(), torch.ones(2, 4))
    every = ["linear", "relu", "mul", "linear_1", "relu_1", "mul_1", "softmax"]
    assert names(program, select_all_call_function()) == every
    assert names(program, select_all_call_function(["aten.relu.default"])) == [
        name for name in every if "relu" not in name
    ]
    linears = select_by_op_type("aten.linear.default")
    assert names(program, linears) == ["linear", "linear_1"]
    assert names(program, select_by_op_type("softmax.int")) == ["softmax"]
    # "blocks.*" is also "blocks.0.linear", whose result does not leave "blocks.0".
    assert names(program, select_by_module_path("blocks.*")) == ["mul", "mul_1"]
    assert names(program, select_by_module_path("blocks.1")) == ["mul_1"]
    inside = select_by_module_path("blocks.1", output_only=False)
    assert names(program, inside) == ["linear_1", "relu_1", "mul_1"]
    assert names(program, select_by_module_class("Block")) == ["mul", "mul_1"]
    assert names(program, select_all(inside, linears)) == ["linear_1"]
    assert names(program, select_any(select_by_op_type("relu.default"), linears)) == [
        *("linear", "relu", "linear_1", "relu_1"),
    ]
    assert names(program, select_not(select_any(inside, linears))) == ["relu", "mul", "softmax"]


@pytest.mark.parametrize("backend", PARTITIONERS)
def test_values_are_eager_s(backend: str) -> None:
    x = torch.randn(2, 4)
    model = Network().eval()
    tapped, taps = tap_outputs(captured(model, x), select_by_module_class("Linear"))
    tapped, more = tap_outputs(tapped, select_by_op_type("relu.default"), STATS)
    assert [tap.output_index for tap in (*taps, *more)] == [1, 2, 3, 4]
    assert (taps[1].module_path, taps[1].module_class) == ("blocks.1.linear", "Linear")
    assert "self.linear(x)" in str(more[0].stack_trace) and more[0].fields[:2] == ("min", "max")
    got = run(tapped, x, backend=backend)
    first = model.blocks[0].linear(x)
    second = model.blocks[1].linear(torch.relu(first) * 2)
    wanted = [model(x), first, second, *map(STATS.eager, (first.relu(), second.relu()))]
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other.detach(), atol=1e-4, rtol=1e-4)


def test_delegates_give_out_values_and_keep_what_they_compute() -> None:
    tapped, _ = tap_outputs(captured(Network(), torch.ones(2, 4)), reducer=STATS)
    edge = rl.to_edge_transform_and_lower(tapped, partitioner=CpuPartitioner())
    calls = [node for node in edge.exported_program().graph.nodes if node.op == "call_function"]
    assert len([node for node in calls if "executorch_call_delegate" in str(node.target)]) == 1
    assert {str(node.target) for node in calls if "aten" in str(node.target)} == set()


def test_state_several_results_and_values_that_are_overwritten() -> None:
    x = torch.tensor([1.0, 3.0, 2.0, 4.0])
    tapped, taps = tap_outputs(captured(State(), x))
    assert [tap.output_index for tap in taps] == list(range(2, 2 + len(taps)))
    got = run(tapped, x)
    values = {tap.node_name: got[tap.output_index] for tap in taps}
    np.testing.assert_array_equal(values["mul"], [2, 6, 4, 8])
    np.testing.assert_array_equal(values["topk[0]"], [9, 7])
    np.testing.assert_array_equal(got[0], [3, 7, 5, 9])
    np.testing.assert_array_equal(values["topk[1]"], [3, 1])


@pytest.mark.parametrize("reducer", [FULL_TENSOR, STATS])
def test_dynamic_sizes(reducer: Reducer) -> None:
    shapes = {"x": {0: Dim("batch", min=1, max=64)}}
    model = Network().eval()
    program = captured(model, torch.ones(2, 4), dynamic_shapes=shapes)
    tapped, _ = tap_outputs(program, select_by_op_type("mul.Tensor"), reducer)
    edge = rl.to_edge_transform_and_lower(tapped, partitioner=CpuPartitioner())
    module = rl.load(edge.to_executorch().buffer)
    for rows in (1, 3, 60):  # 240 elements: three are the largest hundredth
        x = torch.randn(rows, 4)
        _, first, _ = module["forward"].call_flat((x,), {})
        wanted = reducer.eager(model.blocks[0](x))
        np.testing.assert_allclose(first, wanted.detach(), atol=1e-5, rtol=1e-5)


def test_every_dtype_has_statistics() -> None:
    class Values(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return x.bfloat16() * 2, x.half() + 1, x.int() - 1, x > 0, x / 0

    x = torch.tensor([-1.0, 0.0, 2.0])
    tapped, taps = tap_outputs(captured(Values(), x), reducer=STATS)
    got = run(tapped, x)
    wanted = tapped.module()(x)
    assert len(taps) > 5
    for tap in taps:
        np.testing.assert_allclose(got[tap.output_index], wanted[tap.output_index], rtol=1e-3)


def test_reducers_of_the_caller() -> None:
    largest = Reducer("largest", ("first", "second"), lambda value: value.flatten().topk(2).values)
    x = torch.randn(2, 4)
    frame, [tap, _] = tap_compare(
        Network().eval(),
        (x,),
        CpuPartitioner(),
        selector=select_by_op_type("relu.default"),
        reducer=largest,
    )
    assert tap.fields == ("first", "second")
    assert (frame.aot_first - frame.rt_first).abs().max() < 1e-5
    with pytest.raises(ExportError, match="there is another reducer named 'largest'"):
        tap_outputs(captured(Network(), x), reducer=Reducer("largest", (), lambda value: value))


def test_whole_values_are_compared_by_their_noise() -> None:
    x = torch.randn(2, 4)
    frame, taps = tap_compare(Network().eval(), (x,), XnnpackPartitioner(), reducer="FULL_TENSOR")
    assert list(frame.output_index) == [tap.output_index for tap in taps]
    assert frame.sqnr_db.min() > 60 and set(frame.aot_numel) == {8}


def test_export_verifies_a_tapped_program() -> None:
    x = torch.randn(2, 4)
    tapped, _ = tap_outputs(captured(Network(), x), select_by_op_type("relu.default"))
    program = rl.export(tapped, (x,), backend="cpu")
    assert len(rl.load(program.buffer)["forward"].call_flat((x,), {})) == 3


def test_what_is_wrong_is_said() -> None:
    program = captured(Network(), torch.ones(2, 4))
    before = str(program.graph)
    with pytest.raises(
        ExportError, match=r"of 7 calls the first are aten.linear.default, aten.relu"
    ):
        tap_outputs(program, select_by_op_type("aten.conv2d.default"))
    with pytest.raises(ExportError, match="'MEAN'; there are FULL_TENSOR, STATS"):
        tap_outputs(program, reducer="MEAN")
    with pytest.raises(ExportError, match=r"'wrong' fails on the value of linear: Dimension out"):
        tap_outputs(program, reducer=Reducer("wrong", (), lambda value: value.sum(7)))
    with pytest.raises(ExportError, match=r"select_by_module_path\(\) selects nothing: give"):
        select_by_module_path()
    assert len(tap_outputs(program, max_taps=2)[1]) == 2
    assert str(program.graph) == before
