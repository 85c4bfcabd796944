"""The cpu backend: each operator equals eager, and attention with all its masks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from cpu_models import IMAGE, LAST, Call, X, call, lowered, whole
from torch import nn

import rushlight as rl
from delegates import lowered_modules
from rushlight.backends.cpu.tiles.terms import TERMS
from rushlight.schema import cpu_engine as fb

aten = torch.ops.aten


UNARY = {
    target: target
    for target in TERMS
    if len(
        [
            a
            for a in target._schema.arguments
            if a.default_value is None and not a.has_default_value()
        ]
    )
    == 1
}


@pytest.mark.parametrize("target", UNARY, ids=str)
def test_functions(target: Any) -> None:
    x = torch.cat([torch.randn(200) * 3, torch.tensor([0.0, -0.0, 1.0, -1.0, 20.0, -20.0])])
    if target is aten.logical_not.default:
        x = x > 0
    function = (lambda a: a.clamp(-0.5, 1)) if target is aten.clamp.default else target
    assert call(function, x.reshape(2, -1)) == ["Elementwise"]


@pytest.mark.parametrize("target", [t for t in TERMS if t not in UNARY], ids=str)
def test_functions_of_two(target: Any) -> None:
    x, y = torch.rand(3, 40) + 0.5, torch.rand(3, 40) + 0.5
    y[:, ::3] = x[:, ::3]
    if target is aten.where.self:
        operators = call(lambda a, b: torch.where(a > b, a, b), x, y)
    elif "logical" in str(target):
        operators = call(target, x > 1, y > 1)
    elif "Scalar" in str(target):
        operators = call(lambda a: target(a, 0.75), x)
    else:
        operators = call(target, x, y)
    assert operators == ["Elementwise"]


@pytest.mark.parametrize("alpha", [1, 2.5])
def test_alpha(alpha: float) -> None:
    y = torch.randn(7)
    call(lambda a, b: torch.add(a, b, alpha=alpha), X, y)
    call(lambda a, b: torch.sub(a, b, alpha=alpha), X, y)


@pytest.mark.parametrize("exponent", [-1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.5])
def test_powers(exponent: float) -> None:
    call(lambda a: a**exponent, torch.rand(3, 5) + 0.1)


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (5, 1), (1, 7), (3, 1, 7), (3, 5, 1), (3, 1, 1), (1, 1, 1)]
)
def test_broadcasting(shape: tuple[int, ...]) -> None:
    y = torch.randn(shape)
    assert call(lambda a, b: (a * b - b).sigmoid() + a, X, y) == ["Elementwise"]
    call(lambda a, b: b - a, X, y)


def test_layouts_of_operands() -> None:
    bias = torch.randn(6, 1, 1)
    call(lambda a, b: (a + b).relu(), LAST, bias)
    call(lambda a, b: a * b + 1, LAST, IMAGE)
    call(lambda a: a.transpose(1, 2) + a.transpose(1, 2) * 2, X)
    call(lambda a, b: a.permute(2, 0, 1)[1:, :, ::2] * b, X, torch.randn(6, 3, 3))


def test_empty_and_single() -> None:
    call(lambda a: a.exp() + 1, torch.randn(0, 4))
    call(lambda a: a.exp() + 1, torch.randn(()))
    whole(nn.Linear(4, 3), torch.randn(0, 4))
    whole(nn.Linear(4, 3), torch.randn(4))


def test_nan_and_infinity() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, 1.0])
    for function in (
        torch.relu,
        torch.sigmoid,
        torch.tanh,
        F.silu,
        lambda a: a.clamp(-1, 1),
    ):
        call(function, x)
    gelu = rl.load(bytes(lowered(nn.GELU(), x).to_executorch().buffer))(x)
    assert gelu[0].isnan() and gelu[1] == float("inf") and gelu[2].isnan()  # eager's: NaN for all
    model = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    whole(model, x.expand(3, 5).contiguous())


class Linears(nn.Module):
    """A layer for every depth and number of columns, and an input for every depth."""

    def __init__(self, depths: Sequence[int], columns: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.Linear(depth, width) for width in columns) for depth in depths
        )

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        pairs = zip(inputs, self.layers, strict=True)
        return [layer(x) for x, layers in pairs for layer in layers]


@pytest.mark.parametrize("rows", [1, 2, 13, 14, 15, 29])
def test_linear(rows: int) -> None:
    depths, columns = (1, 8, 37), (1, 15, 16, 17, 33)
    inputs = [torch.randn(rows, depth) for depth in depths]
    assert whole(Linears(depths, columns), *inputs) == ["Product"] * 15


def test_variants_of_activations() -> None:
    x = torch.randn(5, 7) * 10
    call(lambda a: F.elu(a, 0.7), x)
    call(F.selu, x)
    call(F.celu, x)
    call(lambda a: F.softplus(a, 2.0), x)
    call(lambda a: F.softplus(a, 0.5, 4.0), x)


def test_shapes_at_the_edge() -> None:
    one = nn.Linear(7, 1)
    whole(Call(lambda a: one(a).view([]).relu() + 1), torch.randn(1, 7))
    call(lambda a: (a[:, :0].t() @ a).relu(), torch.randn(3, 4))
    call(lambda a: a.mean(0), torch.randn(0, 3))
    whole(nn.LayerNorm(5), torch.randn(0, 5))


def test_products() -> None:
    weight, bias = nn.Parameter(torch.randn(7, 9)), nn.Parameter(torch.randn(9))

    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = weight, bias

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            flat = x.reshape(-1, 7)
            return (
                torch.addmm(self.bias, flat, self.weight),
                flat @ self.weight,
                flat @ flat.t(),
                x @ y,
            )

    assert Counter(whole(Products(), X, torch.randn(3, 7, 4))) == {"Product": 2, "BatchProduct": 2}


@pytest.mark.parametrize("image", [IMAGE, LAST], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 1},
        {"kernel_size": 1, "stride": 2},
        {"kernel_size": 3, "padding": 1},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": (0, 2)},
        {"kernel_size": 3, "dilation": 2, "padding": 2},
        {"kernel_size": 3, "groups": 2, "bias": False},
        {"kernel_size": 3, "groups": 6, "padding": 1},
        {"kernel_size": (2, 3), "groups": 6, "stride": 2, "dilation": (1, 2)},
        {"kernel_size": 5, "padding": "same"},
    ],
    ids=str,
)
def test_convolutions(image: torch.Tensor, settings: dict[str, Any]) -> None:
    operators = whole(nn.Conv2d(6, 12, **settings), image)
    assert operators.count("Convolution") == 1


@pytest.mark.parametrize("size", [(16, 16), (17, 30), (8, 40)])
def test_winograd(size: tuple[int, int]) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(16, 32, 3, padding=1)
            self.second = nn.Conv2d(32, 16, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.relu(x + self.second(F.gelu(self.first(x))))

    model, image = Block(), torch.randn(2, 16, *size)
    operators = whole(model, image)
    assert len([name for name in operators if name.startswith("Convolution")]) == 2
    [delegate] = lowered_modules(lowered(model, image).exported_program())
    operations = [node.operation for node in fb.unpack(delegate.processed_bytes).nodes]
    kinds = [one.kind for one in operations if isinstance(one, fb.Convolution)]
    assert kinds == [fb.ConvolutionKind.WINOGRAD] * 2


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
        {"kernel_size": (3, 2), "groups": 2},
        {"kernel_size": 4, "stride": (1, 3), "bias": False},
    ],
    ids=str,
)
def test_transposed_convolutions(settings: dict[str, Any]) -> None:
    whole(nn.ConvTranspose2d(6, 8, **settings), IMAGE)


def test_convolutions_over_lines() -> None:
    line = torch.randn(2, 6, 20)
    whole(nn.Conv1d(6, 5, 3, padding=1), line)
    whole(nn.Conv1d(6, 6, 3, groups=6, stride=2), line)
    whole(nn.ConvTranspose1d(6, 4, 3, stride=2), line)


@pytest.mark.parametrize("value", [0.0, 1.5])
@pytest.mark.parametrize("pad", [(1, 2, 0, 3), (2, 0), (-1, 1, 1, -2)])
def test_pads(pad: tuple[int, ...], value: float) -> None:
    call(lambda a: F.pad(a, pad, value=value), IMAGE)
    convolution = nn.Conv2d(6, 4, 3, stride=2)
    operators = whole(nn.Sequential(Call(lambda a: F.pad(a, pad, value=value)), convolution), IMAGE)
    assert (operators == ["Convolution", "Copy"]) == (value == 0 and min(pad) >= 0)


@pytest.mark.parametrize("image", [IMAGE, LAST], ids=["contiguous", "channels_last"])
def test_pools(image: torch.Tensor) -> None:
    call(lambda a: F.max_pool2d(a, 3, 2, 1), image)
    call(lambda a: F.max_pool2d(a, (2, 3), dilation=2), image)
    call(lambda a: F.avg_pool2d(a, 3, 2, 1), image)
    call(lambda a: F.avg_pool2d(a, 2, count_include_pad=False, padding=1), image)
    call(lambda a: F.avg_pool2d(a, 2, divisor_override=3), image)
    call(lambda a: F.adaptive_avg_pool2d(a, 1), image)


def test_norms() -> None:
    for width in (1, 5, 16, 33, 100):
        x = torch.randn(6, width)
        assert whole(nn.LayerNorm(width), x) == ["Norm"]
        assert whole(nn.RMSNorm(width, eps=1e-6), x) == ["Norm"]
        whole(nn.LayerNorm(width, elementwise_affine=False), x + 100, tolerance=1e-4)
    whole(nn.LayerNorm((5, 7)), X)
    for image in (IMAGE, LAST):
        whole(nn.GroupNorm(3, 6), image)
        # A batch norm that is not folded into a convolution has a factor and a term per channel.
        for affine in (True, False):
            norm = nn.BatchNorm2d(6, affine=affine)
            norm.running_mean, norm.running_var = torch.randn(6), torch.rand(6) + 0.5
            whole(nn.Sequential(nn.ReLU(), norm), image)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim: int) -> None:
    call(lambda a: a.softmax(dim), X * 10)
    call(lambda a: a.log_softmax(dim), X * 10)


@pytest.mark.parametrize("image", [IMAGE, LAST], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize("dims", [[0], [1], [-1], [2, 3], [1, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions(image: torch.Tensor, dims: list[int], keep: bool) -> None:
    call(lambda a: (a.mean(dims, keep), a.sum(dims, keep)), image)
    call(lambda a: (a.amax(dims, keep), a.amin(dims, keep)), image)


def test_movement() -> None:
    call(lambda a, b: torch.cat([a, b[:, 1:], a * 2], 1), X, torch.randn(3, 4, 7))
    call(lambda a: torch.cat([a, a], 1), LAST)
    call(lambda a: a.permute(2, 0, 1).reshape(7, 15)[2:5].unsqueeze(1).expand(3, 4, 15), X)
    call(lambda a: [b.contiguous() for b in a.split([1, 2, 2], 1)], X)
    call(lambda a: a[1, :, 3].clone(), X)
    whole(nn.Embedding(10, 6), torch.randint(0, 10, (2, 5)))


def test_an_index_that_is_not_there(tmp_path: Path) -> None:
    model = nn.Embedding(10, 6)
    module = rl.load(
        bytes(lowered(model, torch.zeros(3, dtype=torch.int64)).to_executorch().buffer)
    )
    with pytest.raises(rl.RunError, match=r"index 10 at position 1 is not within 0\.\.9"):
        module(torch.tensor([1, 10, 2]))


# --- attention ------------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, mask: torch.Tensor | None = None, **options: Any) -> None:
        super().__init__()
        self.register_buffer("mask", mask)
        self.options = options

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = F.scaled_dot_product_attention(q, k, v, self.mask, **self.options)
        return out.transpose(1, 2).reshape(q.shape[0], q.shape[2], -1)


def heads(batch: int, n: int, length: int, width: int) -> torch.Tensor:
    """Heads in the layout of a projection's result: [batch, length, heads, width] in memory."""
    return torch.randn(batch, length, n, width).transpose(1, 2)


@pytest.mark.parametrize("lengths", [(1, 1), (1, 40), (17, 17), (33, 65)])
@pytest.mark.parametrize("width", [1, 8, 33, 64])
def test_attention(lengths: tuple[int, int], width: int) -> None:
    q, k, v = (heads(2, 3, n, width) for n in (lengths[0], lengths[1], lengths[1]))
    inputs = [x.contiguous() for x in (q, k, v)]
    assert whole(Attention(), *inputs) == ["Attention"]
    whole(Attention(scale=0.3, is_causal=lengths[0] == lengths[1]), *inputs)
    whole(Attention(torch.randn(lengths)), *inputs)


def test_attention_with_masks() -> None:
    inputs = [heads(2, 4, 12, 16).contiguous() for _ in range(3)]
    lower = torch.ones(12, 12, dtype=torch.bool).tril()
    assert whole(Attention(lower), *inputs) == ["Attention"]
    assert whole(Attention(torch.ones(2, 1, 12, 12, dtype=torch.bool)), *inputs) == ["Attention"]
    some = torch.rand(2, 1, 12, 12) > 0.5
    some[:, :, 3] = False  # a query whose keys are all masked
    whole(Attention(some), *inputs)
    computed = Call(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > 0))
    whole(computed, *inputs, torch.randn(2, 4, 12, 12))


def test_grouped_heads() -> None:
    q, k, v = heads(1, 6, 10, 8), heads(1, 2, 10, 8), heads(1, 2, 10, 8)
    inputs = [x.contiguous() for x in (q, k, v)]
    assert whole(Attention(enable_gqa=True, is_causal=True), *inputs) == ["Attention"]
