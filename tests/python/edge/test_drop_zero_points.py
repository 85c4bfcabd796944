"""drop_zero_points: zero points of groups that are all zero are not stored."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from graphs import captured
from torch import nn

import rushlight as rl

quantized = torch.ops.quantized_decomposed


class Groups(nn.Module):
    """A matrix of int8 with a scale and zero point for each group of 8."""

    def __init__(self, zero: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-8, 7, (64, 512), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(64, 64) + 0.5)
        zeros = torch.zeros(64, 64, dtype=torch.int8)
        zeros[3, 5] = zero
        self.register_buffer("zeros", zeros)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        zeros = self.zeros.to(torch.int64).reshape(64, 64)
        how = (-8, 7, torch.int8, 8, torch.float32)
        return x + quantized.dequantize_per_channel_group(self.weight, self.scales, zeros, *how)


@pytest.mark.parametrize("zero", [0, 1])
def test_zero_points_are_stored_where_one_is_not_zero(zero: int) -> None:
    model, x = Groups(zero), torch.randn(64, 512)
    edge = rl.to_edge(captured(model, x))
    [call] = [n for n in edge.exported_program().graph.nodes if "group" in str(n.target)]
    assert (call.args[2] is None) == (zero == 0)
    buffer = edge.to_executorch().buffer
    assert torch.equal(rl.load(buffer)(x), model(x))
    stored = 64 * 512 + 4 * 64 * 64 + (8 * 64 * 64 if zero else 0)
    assert stored < len(buffer) < stored + 4096
