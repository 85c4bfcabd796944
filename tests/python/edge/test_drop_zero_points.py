"""drop_zero_points: zero points of groups that are all zero are not stored."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from expecttest import assert_expected_inline
from graphs import run
from pass_text import text, traced

from rushlight.edge.constants import Constants
from rushlight.edge.passes.drop_zero_points import drop_zero_points

quantized = torch.ops.quantized_decomposed
HOW = -8, 7, torch.int8, 4, torch.float32


def groups(x: torch.Tensor, w: Any, scales: Any, zeros: Any) -> torch.Tensor:
    zeros = zeros.to(torch.int64).view(2, 2)
    return x + quantized.dequantize_per_channel_group(w, scales, zeros, *HOW)


@pytest.mark.parametrize("zero", [0, 1])
def test_zero_points_stay_where_one_is_not_zero(zero: int) -> None:
    zeros = torch.tensor([0, 0, 0, zero], dtype=torch.int8)
    weights = {"w": torch.ones(2, 8, dtype=torch.int8), "scales": torch.rand(2, 2), "zeros": zeros}
    x = torch.randn(2, 8)
    program = traced(groups, x, **weights)
    assert drop_zero_points(Constants(program)) == 1 - zero
    assert torch.equal(run(program, x)[0], groups(x, **weights))


def test_none_stands_for_zeros() -> None:
    zeros = torch.zeros(4, dtype=torch.int8)
    weights = {"w": torch.ones(2, 8, dtype=torch.int8), "scales": torch.ones(2, 2), "zeros": zeros}
    program = traced(groups, torch.ones(2, 8), **weights)
    drop_zero_points(Constants(program))
    assert_expected_inline(
        text(program),
        """\
x: float32[2, 8]
w: int8[2, 8] = constant
scales: float32[2, 2] = [[1, 1], [1, 1]]
zeros: int8[4] = [0, 0, 0, 0]
%1: int64[4] = _to_copy(zeros, dtype=int64)
%2: int64[2, 2] = view(%1, [2, 2])
%3: float32[2, 8] = dequantize_per_channel_group(w, scales, None, -8, 7, int8, 4, float32)
%4: float32[2, 8] = add.Tensor(x, %3)
return [%4]
""",
    )
