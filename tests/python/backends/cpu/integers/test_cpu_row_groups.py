"""The cpu backend: linear layers whose rows are rounded in groups."""

from __future__ import annotations

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
)
from torch import Tensor, nn

import rushlight as rl
from delegates import lowered_modules
from rushlight.ir.custom_ops.fake_quantize import fake_quantize_groups, rounded
from rushlight.schema import cpu_engine as fb

ROWS = ["QuantizeRows", "DynamicProduct"]


def _layer(layer: nn.Module, size: int) -> Holding:
    return Holding(layer, lambda x: layer(fake_quantize_groups(x, size)))


@pytest.mark.parametrize("low", [-128, -8], ids=["int8", "int4"])
@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize(("size", "group"), [(32, 32), (16, 16), (32, 64)])
def test_a_scale_for_each_group(size: int, group: int, rows: int, low: int) -> None:
    layer, x = Groups(20, 192, group, exact=False, low=low), torch.randn(rows, 192)
    x[:, 32:64] *= 100
    x[0, 64:96] = 0
    model = _layer(layer, size)
    assert names_of(nodes_in(lowered(model, x))) == ROWS
    close_to_eager(model, x)


@pytest.mark.parametrize("low", [-127, -8], ids=["int8", "int4"])
def test_a_scale_for_each_column(low: int) -> None:
    model, x = _layer(Linear(20, 96, low=low), 32), torch.randn(2, 3, 96)
    assert names_of(nodes_in(lowered(model, x))) == ROWS
    close_to_eager(model, x)


def test_scales_of_two_bytes() -> None:
    layer = Groups(16, 64, 32, exact=False)
    layer.scales = layer.scales.half().float()
    [part] = lowered_modules(lowered(_layer(layer, 32), torch.randn(2, 64)).exported_program())
    graph = fb.unpack(part.processed_bytes)
    assert graph.version == fb.Version.ROW_GROUPS
    scales = graph.values[graph.nodes[1].inputs[4]]
    assert scales.sizes == [2 * 16] and scales.dtype is fb.ScalarType.HALF
    close_to_eager(_layer(layer, 32), torch.randn(2, 64))


def test_layers_of_one_input_share_its_rows() -> None:
    one, other = (Groups(16, 64, 32) for _ in range(2))

    def forward(x: Tensor) -> list[Tensor]:
        return [layer(fake_quantize_groups(x, 32)) for layer in (one, other)]

    model, x = Holding(one, other, forward), torch.randn(3, 64)
    assert names_of(nodes_in(lowered(model, x))) == [*ROWS, "DynamicProduct"]
    close_to_eager(model, x)


def test_what_no_product_reads_is_computed_in_float32() -> None:
    layer = Groups(16, 64, 32)

    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        numbers = fake_quantize_groups(x, 32)
        return layer(numbers), numbers

    cases = [
        Holding(layer, forward),
        _layer(Groups(16, 64, 16), 32),  # the rows' groups do not divide the weights'
        _layer(layer, 8),
        Holding(lambda x: fake_quantize_groups(x, 32)),
    ]
    for model in cases:
        x = torch.randn(3, 64)
        assert "QuantizeRows" not in names_of(nodes_in(lowered(model, x)))
        close_to_eager(model, x)


def test_numbers_that_are_not_finite() -> None:
    model, x = _layer(Groups(16, 64, 32), 32), torch.randn(4, 64)
    x[1, 3], x[2, 40] = torch.nan, torch.inf
    close_to_eager(model, x)
    assert rounded(x, 32).isnan().sum() == 64


def test_other_backends_compute_it_with_arithmetic() -> None:
    model, x = _layer(Groups(16, 64, 32), 32), torch.randn(4, 64)
    program = rl.export(model.eval(), (x,), backend="portable")
    torch.testing.assert_close(rl.load(program.buffer)(x), model(x), rtol=1e-4, atol=1e-4)
