"""The cpu backend: linear layers whose input is quantised at run time, row by row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cpu_quantized_models import (
    Groups,
    Holding,
    Linear,
    close_to_eager,
    left_of,
    lowered,
    names_of,
    nodes_in,
    rows_at_run,
    tensor_at_run,
    whole,
)
from torch import Tensor, nn
from torch.nn import functional

from delegates import lowered_modules
from rushlight.schema import cpu_engine as fb

ROWS = ["QuantizeRows", "DynamicProduct"]


@pytest.mark.parametrize("at_run", [tensor_at_run, rows_at_run])
@pytest.mark.parametrize("sizes", [(8, 5), (33, 64)])
def test_linear(sizes: tuple[int, int], at_run: Any) -> None:
    """With one row, quantising by rows and quantising the whole tensor are the same."""
    linear = Linear(*sizes)
    model = Holding(linear, lambda x: linear(at_run(x)))
    assert whole(model, torch.randn(1, sizes[1]), scale=1e-4, most=1) == ROWS


def test_rows_have_parameters_of_their_own() -> None:
    linear = Linear(20, 36, bias=False)
    x = torch.randn(2, 3, 36) * torch.tensor([1.0, 10.0, 0.1]).reshape(1, 3, 1)
    model = Holding(linear, lambda x: linear(rows_at_run(x)))
    assert whole(model, x, scale=1e-3, most=1) == ROWS


def test_layers_of_one_input_share_its_rows() -> None:
    q, k, v = (Linear(16, 24) for _ in range(3))

    def forward(x: Tensor) -> list[Tensor]:
        return [layer(rows_at_run(x)) for layer in (q, k, v)]

    operators = whole(Holding(q, k, v, forward), torch.randn(5, 24), scale=1e-4, most=1)
    assert operators == ["QuantizeRows", *["DynamicProduct"] * 3]


def test_what_follows_is_part_of_the_product() -> None:
    first, second = Linear(32, 24), Linear(24, 32)

    def forward(x: Tensor) -> Tensor:
        y = functional.gelu(first(rows_at_run(x)))
        return second(rows_at_run(y)) + x

    x = torch.randn(5, 24)
    model = Holding(first, second, forward)
    nodes = nodes_in(lowered(model, x))
    assert names_of(nodes) == ROWS * 2
    assert nodes[1].operation.epilogue.program is not None and nodes[3].operation.epilogue.added
    close_to_eager(model, x)


@pytest.mark.parametrize("exact", [True, False], ids=["bfloat16", "float32"])
@pytest.mark.parametrize("sizes", [(16, 64, 32), (40, 96, 8), (5, 128, 128)])
def test_weights_in_groups_take_half_bytes(sizes: tuple[int, int, int], exact: bool) -> None:
    columns, depth, size = sizes
    layer = Groups(columns, depth, size, exact)
    model = Holding(layer, lambda x: layer(rows_at_run(x)))
    assert whole(model, torch.randn(3, depth), scale=1e-3, most=1) == ROWS
    edge = lowered(model, torch.randn(3, depth))
    [part] = lowered_modules(edge.exported_program())
    wide = -(-columns // 16) * 16
    groups = depth // size
    per_scale = 2 if exact and groups > 1 else 4
    sizes_ = sorted(c.size for c in fb.unpack(part.processed_bytes).constants)
    expected = [wide * depth // 2, wide * groups * per_scale, wide * 4, wide * 4]
    assert sizes_ == sorted(expected)


def test_constant_and_zero_rows() -> None:
    linear = Linear(8, 16)
    model = Holding(linear, lambda x: linear(rows_at_run(x)))
    x = torch.stack([torch.zeros(16), torch.full((16,), 3.0), torch.full((16,), -2.0)])
    assert whole(model, x, scale=1e-3, most=1) == ROWS


# --- what is left ---------------------------------------------------------------------------------


def test_groups_of_other_sizes_stay_with_a_reason() -> None:
    layer = Groups(8, 36, 12)
    left = left_of(lowered(Holding(layer, lambda x: layer(rows_at_run(x))), torch.randn(3, 36)))
    assert any("multiples of 8" in (reason or "") for reason in left.values())


def test_rows_of_images_stay_with_a_reason() -> None:
    weight = nn.Parameter(torch.randn(4, 3, 3, 3))
    model = Holding(lambda x: functional.conv2d(tensor_at_run(x), weight))
    model.weight = weight
    left = left_of(lowered(model, torch.randn(1, 3, 8, 8)))
    assert any("rows at run time, not images" in (reason or "") for reason in left.values())
