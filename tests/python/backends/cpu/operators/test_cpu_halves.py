"""The cpu backend: programs in float16 and bfloat16, which it computes in float32."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from cpu_quantized_models import left_of, names_of, nodes_in
from torch import Tensor, nn
from torch.nn import functional

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.schema import cpu_engine as fb

HALVES = [torch.float16, torch.bfloat16]


class Calls(nn.Module):
    """A function of modules and inputs."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *inputs: Any) -> Any:
        return self.function(*self.parts, *inputs)


def lowered(model: nn.Module, *args: Any, sizes: Any = None) -> rl.EdgeProgramManager:
    exported = torch.export.export(model.eval(), args, dynamic_shapes=sizes)
    return rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])


def check(model: nn.Module, *args: Any) -> list[fb.Node]:
    """Compare results with those of the same numbers in float32; returns the delegate's nodes."""
    edge = lowered(model, *args)
    assert not left_of(edge)
    actual = flat(rl.load(bytes(edge.to_executorch().buffer), threads=2)(*args))
    wide = [a.float() if a.is_floating_point() else a for a in args]
    with torch.no_grad():
        exact = flat(copy.deepcopy(model).float()(*wide))
        eager = flat(model(*args))
    for ours, real, theirs in zip(actual, exact, eager, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        eps = torch.finfo(ours.dtype).eps if ours.is_floating_point() else 0
        torch.testing.assert_close(ours.float(), real.float(), rtol=eps, atol=eps / 50)
    return nodes_in(edge)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_layers(dtype: torch.dtype, rows: int) -> None:
    def forward(first: nn.Module, second: nn.Module, norm: nn.Module, x: Tensor) -> Tensor:
        return norm(second(functional.gelu(first(x))) + x)

    model = Calls(forward, nn.Linear(24, 40), nn.Linear(40, 24), nn.LayerNorm(24)).to(dtype)
    nodes = check(model, torch.randn(rows, 24).to(dtype))
    assert names_of(nodes) == ["Copy", "Product", "Product", "Norm", "Copy"]


@pytest.mark.parametrize("dtype", HALVES)
def test_images(dtype: torch.dtype) -> None:
    parts = [
        nn.Conv2d(3, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU6(),
        nn.Conv2d(64, 64, 3, groups=64),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 96, 1),
        nn.Conv2d(96, 96, 3, padding=1),
        nn.Hardswish(),
        nn.ConvTranspose2d(96, 32, 2, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Softmax(1),
    ]
    model = nn.Sequential(*parts).to(dtype)
    kinds = [s.operation.kind for s in check(model, torch.randn(2, 3, 20, 20).to(dtype))
             if isinstance(s.operation, fb.Convolution)]  # fmt: skip
    assert fb.ConvolutionKind.WINOGRAD not in kinds


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("tied", [False, True])
def test_weights_and_tables_are_stored_as_they_are_given(dtype: torch.dtype, tied: bool) -> None:
    table, layer = nn.Embedding(500, 64), nn.Linear(64, 500, bias=False)
    conv = nn.Conv1d(64, 64, 3, padding=1)
    if tied:
        layer.weight = table.weight

    def forward(table: nn.Module, layer: nn.Module, conv: nn.Module, tokens: Tensor) -> Tensor:
        return layer(conv(table(tokens).mT).mT)

    model = Calls(forward, table, layer, conv).to(dtype)
    tokens = torch.randint(0, 500, (2, 9))
    check(model, tokens)
    [part] = lowered_modules(lowered(model, tokens).exported_program())
    stored = sum(constant.size for constant in fb.unpack(part.processed_bytes).constants)
    columns = 512 * 64 + (0 if tied else 500 * 64)  # a matrix in whole panels
    assert stored == 2 * (columns + 3 * 64 * 64) + 4 * 64  # and a bias


@pytest.mark.parametrize("dtype", HALVES)
def test_attention_with_a_mask(dtype: torch.dtype) -> None:
    def forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, mask)

    q, k, v = (torch.randn(2, 3, 7, 16).to(dtype) for _ in range(3))
    nodes = check(Calls(forward), q, k, v, torch.randn(2, 1, 7, 7).to(dtype))
    assert names_of(nodes).count("Attention") == 1


@pytest.mark.parametrize("dtype", HALVES)
def test_conversions_within_a_part_are_left_out(dtype: torch.dtype) -> None:
    """A norm in float32, as in models with half precision."""

    def forward(scale: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        wide = (x + y).float()
        normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return scale(normed.to(x.dtype)), wide

    model = Calls(forward, nn.Linear(32, 8)).to(dtype)
    x, y = (torch.randn(3, 32).to(dtype) for _ in range(2))
    nodes = check(model, x, y)
    assert names_of(nodes).count("Copy") == 3  # two inputs and a result


@pytest.mark.parametrize("dtype", HALVES)
def test_large_constants_of_other_kinds(dtype: torch.dtype) -> None:
    """Biases, norms and masks of as many elements as weights have."""

    def forward(layer: nn.Module, norm: nn.Module, conv: nn.Module, x: Tensor) -> Tensor:
        y = norm(layer(x)) * norm.weight
        return conv(y.mT).mT

    norm = nn.LayerNorm(5000)
    nn.init.normal_(norm.weight)
    model = Calls(forward, nn.Linear(8, 5000), norm, nn.Conv1d(5000, 5, 1)).to(dtype)
    check(model, torch.randn(1, 3, 8).to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_a_large_constant_mask(dtype: torch.dtype) -> None:
    mask = torch.full((80, 80), -torch.inf, dtype=dtype).triu(1)

    def forward(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, mask)

    q, k, v = (torch.randn(1, 2, 80, 16).to(dtype) for _ in range(3))
    edge = lowered(Calls(forward), q, k, v)
    assert not left_of(edge)
    [attention] = [s for s in nodes_in(edge) if isinstance(s.operation, fb.Attention)]
    assert attention.operation.causal
    actual = rl.load(bytes(edge.to_executorch().buffer))(q, k, v)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(actual, forward(q, k, v), rtol=2 * eps, atol=2 * eps)


def test_a_constant_that_is_converted() -> None:
    def forward(scale: nn.Linear, x: Tensor) -> Tensor:
        return x * scale.weight[0].to(torch.float32)

    check(Calls(forward, nn.Linear(5000, 1)).half(), torch.randn(2, 5000))


def test_the_epsilon_of_a_norm_is_that_of_float32() -> None:
    """Eager uses the epsilon of float32 for a norm in float16."""

    def forward(x: Tensor) -> Tensor:
        return functional.rms_norm(x, (16,))

    check(Calls(forward), (torch.randn(3, 16) * 0.01).half())


def test_values_that_only_move_and_values_of_other_types() -> None:
    def forward(x: Tensor, chosen: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
        moved = torch.cat([x[:, 2:], x[:, :2]], 1)
        return torch.where(chosen, moved, x + 1), moved, tokens.reshape(-1), chosen.mT

    x, chosen = torch.randn(4, 6).half(), torch.rand(4, 6) > 0.5
    check(Calls(forward), x, chosen, torch.arange(6).reshape(2, 3))


def test_sizes_that_vary() -> None:
    layer = nn.Linear(16, 24).half()
    rows = torch.export.Dim("rows", max=30)
    edge = lowered(layer, torch.randn(3, 16).half(), sizes=({0: rows},))
    module = rl.load(bytes(edge.to_executorch().buffer), threads=2)
    for n in (3, 30, 1, 12):
        x = torch.randn(n, 16).half()
        torch.testing.assert_close(module(x), layer(x), rtol=2e-3, atol=1e-3)


def _kept(x: Tensor) -> Tensor:
    return (x * 3).half().float() + 1


def _split(x: Tensor) -> tuple[Tensor, Tensor]:
    high = x.bfloat16()
    return high, (x - high.float()).bfloat16()


def _compared(x: Tensor) -> tuple[Tensor, Tensor]:
    rounded = x.half()
    return rounded, rounded.float() == x


def _moved(x: Tensor) -> Tensor:
    return (x * 3).half().reshape(5, 10).mT.float() + 1


def _twice(x: Tensor) -> Tensor:
    return x.half().bfloat16().float() + 1


@pytest.mark.parametrize("function", [_kept, _split, _compared, _moved, _twice])
def test_rounding_that_a_model_asks_for_stays(function: Callable[[Tensor], Any]) -> None:
    """A value is converted to half precision and back, possibly with movement between."""
    x = torch.randn(50)
    edge = lowered(Calls(function), x)
    assert any("rounds" in str(reason) for reason in left_of(edge).values())
    actual = flat(rl.load(bytes(edge.to_executorch().buffer))(x))
    for ours, wanted in zip(actual, flat(function(x)), strict=True):
        assert torch.equal(ours, wanted)


def test_an_image_in_another_order_that_is_read_as_it_lies() -> None:
    def forward(x: Tensor) -> Tensor:
        return torch.as_strided(x, (2, 3), (1, 2)) * 2

    x = torch.randn(2, 4, 3, 3).half().to(memory_format=torch.channels_last)
    check(Calls(forward), x)


@pytest.mark.parametrize("recipe", ["float16", "bfloat16"])
def test_recipes_run_whole(recipe: str) -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.SiLU(), nn.Linear(512, 256)).eval()
    x = torch.randn(4, 256)
    program = rl.export(model, (x,), quantize=recipe, backend="cpu")
    assert len(program.buffer) < 2 * 2 * 256 * 512 + 4 * 768 + 8192
    dtype = getattr(torch, recipe)
    actual = rl.load(program.buffer)(x.to(dtype))
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(actual.float(), model(x), rtol=4 * eps, atol=4 * eps)
