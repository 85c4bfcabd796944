"""The cpu backend: products of the same rows that become one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cpu_quantized_models import (
    Groups,
    Holding,
    Linear,
    close_to_eager,
    lowered,
    names_of,
    nodes_in,
    rows_at_run,
)
from torch import Tensor
from torch.nn import functional

from rushlight.ir.custom_ops.fake_quantize import fake_quantize_groups

HEADS = 4


def _heads(layers: list[Any], quantise: Any) -> Holding:
    """Queries, keys and values of heads, which are then computed with."""

    def forward(x: Tensor) -> Tensor:
        q, k, v = (layer(quantise(x)).view(len(x), -1, HEADS).transpose(0, 1) for layer in layers)
        return torch.cat([torch.sin(q), torch.cos(k), v * 2])

    return Holding(*layers, forward)


@pytest.mark.parametrize(
    ("quantise", "product"),
    [
        (rows_at_run, ["QuantizeRows", "DynamicProduct"]),
        (lambda x: fake_quantize_groups(x, 32), ["QuantizeRows", "DynamicProduct"]),
        (lambda x: x, ["Product"]),
    ],
    ids=["rows", "groups", "floats"],
)
@pytest.mark.parametrize("rows", [1, 9])
def test_queries_keys_and_values_are_one_product(
    rows: int, quantise: Any, product: list[str]
) -> None:
    model = _heads([Groups(columns, 64, 32) for columns in (40, 8, 24)], quantise)
    x = torch.randn(rows, 64)
    names = [name for name in names_of(nodes_in(lowered(model, x))) if name.endswith(("t", "Rows"))]
    assert names == product
    close_to_eager(model, x)


def test_biases_are_joined() -> None:
    layers = [Linear(16, 32), Linear(16, 32, bias=False), Linear(16, 32)]
    model, x = _heads(layers, rows_at_run), torch.randn(5, 32)
    assert names_of(nodes_in(lowered(model, x))).count("DynamicProduct") == 1
    close_to_eager(model, x, tolerance=1e-4)


def test_weights_of_another_form_stay_apart() -> None:
    layers = [Groups(16, 64, 32), Groups(16, 64, 32), Groups(16, 64, 16)]
    model, x = _heads(layers, rows_at_run), torch.randn(5, 64)
    assert names_of(nodes_in(lowered(model, x))).count("DynamicProduct") == 2
    close_to_eager(model, x)


def test_a_gate_stays_apart() -> None:
    gate, up = Groups(48, 64, 32), Groups(48, 64, 32)

    def forward(x: Tensor) -> Tensor:
        return functional.silu(gate(rows_at_run(x))) * up(rows_at_run(x))

    model, x = Holding(gate, up, forward), torch.randn(5, 64)
    assert names_of(nodes_in(lowered(model, x))) == ["QuantizeRows", *["DynamicProduct"] * 2]
    close_to_eager(model, x)
