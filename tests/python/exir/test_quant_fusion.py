"""Quantised graphs with fused operators compute what they did, in eager and in the runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch import nn

import rushlight as rl
from rushlight.edge import EdgeCompileConfig
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.graph_passes.quant_fusion import (
    QuantFusionPass,
    quant_fusion_and_const_prop_pass,
)
from rushlight.exir.manager import to_edge
from rushlight.exir.passes import constant_prop_pass
from rushlight.ir.custom_ops import executorch

executorch.define()
aten = torch.ops.aten
q = torch.ops.quantized_decomposed
U8 = (0.05, 120, 0, 255, torch.uint8)
OUT = (0.1, 100, 0, 255, torch.uint8)
UNCHECKED = EdgeCompileConfig(_check_ir_validity=False)


def rounded(x: torch.Tensor, how: Any = U8) -> torch.Tensor:
    result: torch.Tensor = q.dequantize_per_tensor(q.quantize_per_tensor(x, *how), *how)
    return result


class Computed(nn.Module):
    """Quantised inputs, a function of them, and its quantised result."""

    def __init__(self, function: Callable[..., torch.Tensor], how: Any) -> None:
        super().__init__()
        self.function, self.how = function, how

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return rounded(self.function(rounded(x), rounded(y)), self.how)


X, Y = torch.linspace(-5, 6, 24).reshape(4, 6), torch.linspace(3, -6, 24).reshape(4, 6)
FUSED = [
    (lambda x, y: x + y, OUT, q.add.default),
    (lambda x, y: torch.relu(x + y), OUT, q.add.default),
    (lambda x, y: x.reshape(3, 8), U8, aten.view_copy.default),
    (lambda x, y: x[1:3], U8, aten.slice_copy.Tensor),
    (lambda x, y: x.permute(1, 0), U8, aten.permute_copy.default),
    (lambda x, y: torch.cat([x, y, x]), U8, aten.cat.default),
]


def lowered(model: nn.Module, *inputs: torch.Tensor) -> Any:
    return to_edge(torch.export.export(model, inputs), compile_config=UNCHECKED)


def names(program: Any) -> list[Any]:
    return [n.target for n in program.graph.nodes if n.op == "call_function"]


@pytest.mark.parametrize(("function", "how", "target"), FUSED)
def test_operators_work_on_quantised_values(function: Any, how: Any, target: Any) -> None:
    model = Computed(function, how)
    wanted = model(X, Y)
    fused = lowered(model, X, Y).transform([QuantFusionPass(_fix_node_meta_val=True)])
    program = fused.exported_program()
    calls = names(program)
    assert calls.count(q.dequantize_per_tensor.default) == 1  # of the result
    assert calls.count(target) == 1
    node = next(n for n in program.graph.nodes if n.target == target)
    assert node.meta["val"].dtype == torch.uint8
    # One step where float32 rounds differently.
    torch.testing.assert_close(program.module()(X, Y), wanted, atol=how[0] * 1.01, rtol=0)
    ran = rl.load(fused.to_executorch().buffer)(X, Y)
    torch.testing.assert_close(ran, wanted, atol=how[0] * 1.01, rtol=0)


KEPT = [
    (lambda x, y: x + y[:1], OUT),  # the kernel does not broadcast
    (lambda x, y: x.reshape(3, 8), OUT),  # is quantised in another way
    (lambda x, y: torch.add(x, y, alpha=2), OUT),
    (lambda x, y: torch.cat([x, y * 2]), U8),
]


@pytest.mark.parametrize(("function", "how"), KEPT)
def test_other_operators_are_kept(function: Any, how: Any) -> None:
    model = Computed(function, how)
    program = lowered(model, X, Y).transform([QuantFusionPass()]).exported_program()
    calls = names(program)
    assert q.add.default not in calls
    assert calls.count(q.dequantize_per_tensor.default) > 1
    torch.testing.assert_close(program.module()(X, Y), model(X, Y))


def test_a_sum_with_another_user_is_kept() -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            total = rounded(x) + rounded(y)
            return rounded(total, OUT), total

    program = lowered(Twice(), X, Y).transform([QuantFusionPass()]).exported_program()
    assert q.add.default not in names(program)


class Rows(nn.Module):
    """An embedding whose table is quantised."""

    def __init__(self, low: int, high: int, groups: int, has_zeros: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        table = torch.randint(low, high + 1, (10, 16), generator=generator, dtype=torch.int8)
        scales = torch.rand(10, groups, generator=generator) + 0.1
        zeros = torch.randint(low, high + 1, (10, groups), generator=generator)
        if not has_zeros:
            zeros.zero_()
        self.how, self.groups = (low, high, torch.int8), groups
        self.register_buffer("table", table)
        self.register_buffer("scales", scales if groups > 1 else scales.reshape(10))
        self.register_buffer("zeros", zeros if groups > 1 else zeros.reshape(10))

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        if self.groups > 1:
            size = 16 // self.groups
            parts = (self.table, self.scales, self.zeros)
            weight = q.dequantize_per_channel_group(*parts, *self.how, size, torch.float32)
        else:
            parts = (self.table, self.scales, self.zeros)
            weight = q.dequantize_per_channel(*parts, 0, *self.how)
        return nn.functional.embedding(indices, weight)


@pytest.mark.parametrize(
    ("low", "high", "name"), [(-128, 127, "byte"), (-8, 7, "4bit"), (-2, 1, "2bit")]
)
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("has_zeros", [True, False])
def test_rows_of_quantised_tables_are_looked_up(
    low: int, high: int, name: str, groups: int, has_zeros: bool
) -> None:
    model, indices = Rows(low, high, groups, has_zeros), torch.tensor([[3, 0, 9], [3, 1, 2]])
    wanted = model(indices)
    edge = lowered(model, indices)
    program = quant_fusion_and_const_prop_pass(edge.exported_program())
    calls = names(program)
    target = getattr(q, f"embedding_{name}").default
    assert calls == [target]
    node = next(n for n in program.graph.nodes if n.target == target)
    assert (node.args[2] is None) == (not has_zeros)
    torch.testing.assert_close(program.module()(indices), wanted)
    torch.testing.assert_close(rl.load(edge.to_executorch().buffer)(indices), wanted)


def test_the_config_asks_for_fused_calls() -> None:
    model, indices = Rows(-128, 127, 1, False), torch.tensor([3, 0])
    edge = lowered(model, indices)
    before = names(edge.exported_program())
    config = ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True)
    made = edge.to_executorch(config)
    (operator,) = made.executorch_program.execution_plan[0].operators
    assert (operator.name, operator.overload) == ("quantized_decomposed::embedding_byte", "out")
    assert names(edge.exported_program()) == before
    torch.testing.assert_close(rl.load(made.buffer)(indices), model(indices))


def test_quantised_constants_are_kept_unless_asked_for() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.ones(2, 2, dtype=torch.uint8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * q.dequantize_per_tensor(self.weight, *U8)

    x = torch.randn(2, 2)
    for skipped, count in ((None, 1), (set(), 0)):
        program = lowered(Weighted(), x).exported_program()
        assert constant_prop_pass(program, custom_skip_targets=skipped) is program
        assert names(program).count(q.dequantize_per_tensor.default) == count
        torch.testing.assert_close(program.module()(x), Weighted()(x))
