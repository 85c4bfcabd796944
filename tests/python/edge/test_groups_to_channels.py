"""groups_to_channels: weights in groups that no backend took are channels of a reshaped weight."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from expecttest import assert_expected_inline
from graphs import captured
from pass_text import text, traced
from torch import nn

import rushlight as rl
from rushlight.edge.passes.groups_to_channels import groups_to_channels

quantized = torch.ops.quantized_decomposed
ROWS, COLUMNS, GROUP = 64, 128, 32


class Tied(nn.Module):
    """Two products with one grouped weight, which is too large to be stored as real numbers."""

    def __init__(self, dtype: torch.dtype, zero: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        shape = ROWS, COLUMNS // GROUP
        integers = torch.randint(-8, 7, (ROWS, COLUMNS), dtype=torch.int8)
        self.register_buffer("weight", integers)
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


def test_a_group_of_a_row_becomes_a_channel() -> None:
    def model(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        how = -8, 7, torch.int8, 2, torch.float32
        return x + quantized.dequantize_per_channel_group(w, scale, None, *how)

    integers = torch.arange(8, dtype=torch.int8).view(2, 4)
    scale = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    program = traced(model, torch.ones(2, 4), w=integers, scale=scale)
    before = text(program)
    assert_expected_inline(
        text(groups_to_channels(program)),
        """\
c0: int8[4, 2] = [[0, 1], [2, 3], [4, 5], [6, 7]]
c1: float32[4] = [1, 2, 3, 4]
x: float32[2, 4]
%1: float32[4, 2] = dequantize_per_channel(c0, c1, None, 0, -8, 7, int8)
%2: float32[2, 4] = view_copy(%1, [2, 4])
%3: float32[2, 4] = add.Tensor(x, %2)
return [%3]
""",
    )
    assert text(program) == before


def test_a_program_without_groups_is_returned_as_it_is() -> None:
    program = traced(lambda x: x + 1.0, torch.ones(2))
    assert groups_to_channels(program) is program
