"""groups_to_channels: weights in groups that no backend took are channels of a reshaped weight."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from graphs import captured
from torch import nn

import rushlight as rl
from rushlight.edge.passes.groups_to_channels import groups_to_channels
from rushlight.ir.quantized_values import name_of

quantized = torch.ops.quantized_decomposed
ROWS, COLUMNS, GROUP = 64, 128, 32


class Tied(nn.Module):
    """One weight in groups that two products take, larger than what is stored as real numbers."""

    def __init__(self, dtype: torch.dtype, zero: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        shape = ROWS, COLUMNS // GROUP
        steps = torch.randint(-8, 7, (ROWS, COLUMNS), dtype=torch.int8)
        self.register_buffer("weight", steps)
        self.register_buffer("scale", torch.rand(shape) / 50)
        self.register_buffer("zero", torch.full(shape, zero, dtype=torch.int64))
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values = self.weight, self.scale, self.zero, -8, 7, torch.int8, GROUP, self.dtype
        weight = quantized.dequantize_per_channel_group(*values)
        other = quantized.dequantize_per_channel_group(*values)
        return x @ weight.t(), torch.tanh(x) @ other.t()


@pytest.mark.parametrize("zero", [0, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_results_stay_and_the_weight_is_there_once(dtype: torch.dtype, zero: int) -> None:
    model, x = Tied(dtype, zero), torch.randn(2, COLUMNS).to(dtype)
    program = captured(model, x)
    manager = rl.to_edge(program).to_executorch()
    operators = {o.name for o in rl.Program(manager).report().operators}
    assert "quantized_decomposed::dequantize_per_channel.out" in operators
    assert not any("group" in name for name in operators)
    for got, wanted in zip(rl.load(manager.buffer)(x), model(x), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3)
    assert len(manager.buffer) < 2 * ROWS * COLUMNS + 8000


def test_backends_see_groups_and_the_program_stays_as_it_was() -> None:
    edge = rl.to_edge(captured(Tied(torch.float32, 0), torch.randn(2, COLUMNS))).exported_program()
    before = [name_of(node) for node in edge.graph.nodes]
    assert "dequantize_per_channel_group" in before
    new = groups_to_channels(edge)
    assert [name_of(node) for node in edge.graph.nodes] == before
    assert "dequantize_per_channel_group" not in [name_of(node) for node in new.graph.nodes]


def test_a_program_without_groups_is_returned_as_it_is() -> None:
    edge = rl.to_edge(captured(nn.Linear(4, 4), torch.randn(2, 4))).exported_program()
    assert groups_to_channels(edge) is edge
