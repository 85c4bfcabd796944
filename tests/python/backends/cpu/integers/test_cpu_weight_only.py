"""The cpu backend: linear layers with only their weights quantised."""

from __future__ import annotations

import pytest
import torch
from cpu_quantized_models import (
    Conv,
    Groups,
    Holding,
    Linear,
    close_to_eager,
    left_of,
    lowered,
    names_of,
    nodes_in,
    qdq,
    whole,
)
from torch import Tensor, nn
from torch.nn import functional

import rushlight as rl
from delegates import lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.schema import cpu_engine as fb


@pytest.mark.parametrize("low", [-127, -8], ids=["int8", "int4"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [(5, 8), (64, 33), (40, 700)])
def test_a_scale_for_each_column(sizes: tuple[int, int], bias: bool, low: int) -> None:
    x = torch.randn(3, sizes[1])
    assert whole(Linear(*sizes, bias=bias, low=low), x, scale=1e-5, most=1) == ["Product"]


def test_one_scale() -> None:
    assert whole(Linear(20, 24, per_channel=False), torch.randn(2, 3, 24), scale=1e-5, most=1)


@pytest.mark.parametrize("low", [-128, -8], ids=["int8", "int4"])
@pytest.mark.parametrize("exact", [True, False], ids=["bfloat16", "float32"])
@pytest.mark.parametrize("sizes", [(16, 64, 32), (40, 96, 8), (5, 600, 24), (70, 1024, 512)])
def test_a_scale_for_each_group(sizes: tuple[int, int, int], exact: bool, low: int) -> None:
    columns, depth, _ = sizes
    layer, x = Groups(*sizes, exact, low), torch.randn(9, depth)
    assert whole(layer, x, scale=2e-5, most=1) == ["Product"]
    [part] = lowered_modules(lowered(layer, x).exported_program())
    panels = -(-columns // 16)
    scales = panels * 16 * (depth // sizes[2]) * (2 if exact else 4)
    stored = panels * 16 * depth // (2 if low == -8 else 1) + scales
    constants = fb.unpack(part.processed_bytes).constants
    assert sum(c.size for c in constants) == stored + panels * 16 * 4  # and a bias


def test_what_follows_is_part_of_the_product() -> None:
    first, second = Linear(48, 24), Groups(24, 48, 16)

    def forward(x: Tensor) -> Tensor:
        return torch.relu(second(functional.gelu(first(x))) + x)

    for rows in (1, 5, 40):
        model, x = Holding(first, second, forward), torch.randn(rows, 24)
        nodes = nodes_in(lowered(model, x))
        assert names_of(nodes) == ["Product"] * 2
        assert nodes[0].operation.epilogue.program is not None
        assert nodes[1].operation.epilogue.added and nodes[1].operation.epilogue.clamped
        close_to_eager(model, x)


def test_long_sums_with_what_follows() -> None:
    """Long sums are computed in parts, and only the last part applies the epilogue."""
    first, second = Linear(600, 40), Groups(40, 600, 40)
    model = Holding(first, second, lambda x: torch.relu(second(functional.gelu(first(x))) + x))
    for rows in (1, 40):
        close_to_eager(model, torch.randn(rows, 40))


@pytest.mark.parametrize("per_channel", [True, False])
def test_one_weight_of_two_products_that_turn_it(per_channel: bool) -> None:
    layer = Linear(64, 64, bias=False, per_channel=per_channel)

    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        weight = layer.number()
        return functional.linear(x, weight), x @ weight

    model, x = Holding(layer, forward), torch.randn(5, 64)
    edge = lowered(model, x)
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True)
    for ours, wanted in zip(module(x), model(x), strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("low", [-127, -8], ids=["int8", "int4"])
def test_weights_are_exact(low: int) -> None:
    """Weights that are zero give exactly zero, and no column has a common error in all its rows."""
    layer = Linear(40, 4096, bias=False, low=low)
    layer.weight[::2] = 0
    x = torch.rand(3, 4096)
    actual = rl.load(bytes(lowered(layer, x).to_executorch().buffer))(x)
    exact = x.double() @ layer.number().double().t()
    assert bool((actual[:, ::2] == 0).all())
    assert float((actual - exact).abs().max()) < 2e-6 * float(exact.abs().max())


def test_rows_that_are_repeated() -> None:
    layer = Linear(16, 70)
    model = Holding(layer, lambda x: layer(x.expand(9, 70)))
    close_to_eager(model, torch.randn(1, 70))
    plain = nn.Linear(70, 16)
    close_to_eager(Holding(plain, lambda x: plain(x.expand(9, 70))), torch.randn(1, 70))


def test_rows_that_vary() -> None:
    layer = Groups(20, 64, 16)
    rows = torch.export.Dim("rows", max=50)
    exported = torch.export.export(layer, (torch.randn(4, 64),), dynamic_shapes=[{0: rows}])
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    module = rl.load(bytes(edge.to_executorch().buffer), threads=2)
    for n in (1, 7, 50, 2):
        x = torch.randn(n, 64)
        torch.testing.assert_close(module(x), layer(x), rtol=1e-5, atol=1e-5)


def test_weights_in_groups_beside_integers_stay_as_small() -> None:
    """Activations in int8 with weights that the engine multiplies only with floats or rows."""
    layer = Groups(32, 64, 16)
    model, x = Holding(layer, lambda x: layer(qdq(x, 0.02))), torch.randn(3, 64)
    nodes = nodes_in(lowered(model, x))
    assert names_of(nodes)[-1] == "Product" and len(nodes[-1].inputs) == 4
    close_to_eager(model, x)


def test_why_others_stay() -> None:
    zeros = Linear(8, 16)
    zeros.zeros += 1
    conv = Conv(8, 3, 3, 3)
    cases: list[tuple[nn.Module, Tensor, str]] = [
        (Groups(8, 36, 12), torch.randn(2, 36), "groups of 12; the engine's are multiples of 8"),
        (zeros, torch.randn(2, 16), "no zero points"),
        (conv, torch.randn(1, 3, 8, 8), "weights are quantised and its input is not"),
    ]
    for model, x, reason in cases:
        left = left_of(lowered(model, x))
        assert any(reason in str(why) for why in left.values()), left


@pytest.mark.parametrize(("recipe", "bits"), [("int8-weights", 8), ("int4-weights", 4)])
def test_recipes_run_whole(recipe: str, bits: int) -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).eval()
    x = torch.randn(4, 256)
    program = rl.export(model, (x,), quantize=recipe, backend="cpu")
    weights = 2 * 256 * 512 * bits // 8
    scales = 4 * (2 * 256 * 512 // 32 if bits == 4 else 768)
    assert weights + scales < len(program.buffer) < weights + scales + 8192
    exact, actual = model(x), rl.load(program.buffer)(x)
    noise = ((actual - exact).square().mean() / exact.square().mean()).sqrt()
    assert noise < (0.01 if bits == 8 else 0.2)
