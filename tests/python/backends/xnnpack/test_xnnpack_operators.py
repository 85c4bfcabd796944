"""The xnnpack backend: each operator gives in real ExecuTorch what eager gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xnnpack_models import DTYPES, Calls, Peer

pytestmark = pytest.mark.interop

BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)

UNARY: dict[str, Any] = {
    "Abs": torch.abs,
    "Ceiling": torch.ceil,
    "Cos": torch.cos,
    "ELU": F.elu,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "Gelu": F.gelu,
    "Hardswish": F.hardswish,
    "LeakyReLU": F.leaky_relu,
    "Log": lambda x: torch.log(x.abs() + 0.5),
    "Negate": torch.neg,
    "ReciprocalSquareRoot": lambda x: torch.rsqrt(x.abs() + 0.5),
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "Square": torch.square,
    "SquareRoot": lambda x: torch.sqrt(x.abs()),
    "Tanh": torch.tanh,
}


@pytest.fixture
def peer(executorch: Any, tmp_path: Path) -> Peer:
    return Peer(executorch, tmp_path)


@BOTH
def test_functions(peer: Peer, dtype: torch.dtype) -> None:
    shapes = [(1,), (7, 33), (2, 3, 5, 7), (1, 2, 1, 3, 2, 5)]
    inputs = [(torch.randn(shape) * 3).to(dtype) for shape in shapes]
    inputs[0].fill_(0.7)  # errors are relative to the greatest result, here one that is not near 0
    nodes = peer.calls([lambda *xs: [f(x) for f in UNARY.values() for x in xs]], *inputs)
    assert all(nodes[kind] == len(shapes) for kind in UNARY), nodes


BINARY = {
    "Add": torch.add,
    "Subtract": torch.sub,
    "Multiply": torch.mul,
    "Div": lambda a, b: a / (b.abs() + 0.5),
    "Maximum": torch.maximum,
    "Minimum": torch.minimum,
}


@BOTH
def test_functions_of_two(peer: Peer, dtype: torch.dtype) -> None:
    shapes = [(2, 3, 5, 7), (1,), (7,), (5, 1), (3, 1, 7), (2, 1, 1, 1), (1, 3, 1, 1)]
    x, *others = (torch.randn(s).to(dtype) for s in [(2, 3, 5, 7), *shapes, (4, 2, 3, 5, 7)])
    functions = [
        lambda x, *ys: [f(x, y) for f in BINARY.values() for y in ys],
        lambda x, *ys: [f(y, x) for f in BINARY.values() for y in ys],
    ]
    nodes = peer.calls(functions, x, *others)
    assert all(nodes[kind] >= len(others) for kind in BINARY), nodes


def test_numbers_and_constants(peer: Peer) -> None:
    row, channel, matrix = torch.randn(7), torch.randn(3, 1, 1), torch.randn(2, 3, 5, 7)
    functions = [
        lambda x: x + 2,
        lambda x: 1.5 - x,
        lambda x: 1 / (x * x + 1),
        lambda x: torch.add(x, x.sin(), alpha=2.5),
        lambda x: torch.sub(x, x.cos(), alpha=-1),
        lambda x: x * row - channel,
        lambda x: x.permute(0, 2, 3, 1) + matrix.permute(0, 2, 3, 1),
        lambda x: x.permute(0, 2, 3, 1) * channel.reshape(3),
        lambda x: x + (row * 2 + matrix),  # computed ahead of time
        lambda x: x**2 + x**3,
        lambda x: torch.reciprocal(x + 9),
        lambda x: F.silu(x) + F.hardsigmoid(x),
    ]
    nodes = peer.calls(functions, torch.randn(2, 3, 5, 7))
    assert "StaticReshape" not in nodes


def test_layouts_of_operands(peer: Peer) -> None:
    conv = nn.Conv2d(3, 4, 1)
    functions = [
        lambda x: conv(x) + torch.randn(1).new_ones(4, 1, 1),
        lambda x: conv(x) * x[:, :1],
        lambda x: conv(x) + x.mean((2, 3), keepdim=True)[:, :1],
        lambda x: conv(x) / (x[0, 0] + 9),
        lambda x: x.transpose(1, 3) + x.transpose(1, 2).transpose(1, 3).transpose(2, 3),
    ]
    peer.whole(Calls(conv, *functions), torch.rand(2, 3, 5, 7))


@DTYPES
def test_clamps(peer: Peer, dtype: torch.dtype) -> None:
    functions = [
        torch.relu,
        F.relu6,
        F.hardtanh,
        lambda x: x.clamp(-0.5, 1.25),
        lambda x: x.clamp(min=0.25),
        lambda x: x.clamp(max=-0.25),
        lambda x: x.clamp(-1, 1).clamp(-2, 0.5),
    ]
    nodes = peer.calls(functions, (torch.randn(3, 41) * 4).to(dtype))
    assert nodes == {"Clamp": len(functions)}


FUSED = {
    "FullyConnected": nn.Linear(8, 8),
    "Conv2d": nn.Conv2d(3, 4, 3),
    "DepthwiseConv2d": nn.Conv2d(3, 3, 3, groups=3),
    "ConvTranspose2d": nn.ConvTranspose2d(3, 4, 3),
    "AvgPooling2d": nn.AvgPool2d(2),
    "MaxPooling2d": nn.MaxPool2d(2),
    "GlobalAvgPooling2d": nn.AdaptiveAvgPool2d(1),
    "Add": lambda x: x + 0.5,
    "Subtract": lambda x: x - 0.5,
    "Multiply": lambda x: x * 2,
    "Div": lambda x: x / 0.5,
}
ALONE = {"Tanh": torch.tanh, "Maximum": lambda x: torch.maximum(x, -x), "Square": torch.square}


def test_activations_are_part_of_what_is_before(peer: Peer) -> None:
    x, y = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
    functions = [
        lambda x, y: [F.relu6(f(x)) for f in FUSED.values()],
        lambda x, y: [
            f(y).permute(0, 3, 1, 2).flatten(1).clamp(-0.1, 0.2).relu() for f in FUSED.values()
        ],
        lambda x, y: [f(x).relu() for f in ALONE.values()],
    ]
    nodes = peer.calls(functions, x, y, held=FUSED.values())
    assert all(nodes[kind] == 2 for kind in FUSED), nodes
    assert nodes["Clamp"] == len(ALONE)


def test_activations_stay_apart_where_what_is_before_is_used(peer: Peer) -> None:
    functions = [lambda x: [y := x + 1, y.relu()], lambda x: (y := x * 2).relu() - y]
    nodes = peer.calls(functions, torch.randn(5, 7))
    assert nodes["Clamp"] == 2


def test_slopes(peer: Peer) -> None:
    inputs = torch.randn(5, 6), torch.randn(2, 6, 5), torch.randn(2, 6, 3, 5)
    one, each = nn.PReLU(), nn.PReLU(6)
    each.weight.data = torch.randn(6)
    functions = [
        lambda *xs: [f(x) for f in (one, each) for x in xs],
        lambda *xs: [F.leaky_relu(x, s) for s in (0.0, 0.3, -0.5, 2.0) for x in xs],
        lambda *xs: [F.elu(x, a) for a in (0.3, 1.7) for x in xs],
        lambda *xs: [torch.where(x > 0, x, x * torch.full((1,), -0.5)) for x in xs],
    ]
    nodes = peer.calls(functions, *inputs, held=[one, each])
    assert (nodes["PReLU"], nodes["LeakyReLU"], nodes["ELU"]) == (9, 12, 6)


@DTYPES
def test_products_with_weights(peer: Peer, dtype: torch.dtype) -> None:
    sizes = [(1, 1), (8, 3), (17, 33)]
    linears = [nn.Linear(*s, bias=b).to(dtype) for s in sizes for b in (True, False)]
    weights = [torch.randn(s).to(dtype) for s in sizes]
    biases = [torch.randn(width).to(dtype) for _, width in sizes]
    rows = [(1,), (5,), (2, 3), (2, 1, 3, 2)]
    inputs = [torch.randn(*r, depth).to(dtype) for depth, _ in sizes for r in rows]

    functions = [
        lambda *xs: [f(x) for f in linears for x in xs if x.shape[-1] == f.in_features],
        lambda *xs: [torch.mm(x.flatten(0, -2), weights[i // 4]) for i, x in enumerate(xs)],
        lambda *xs: [
            torch.addmm(biases[i // 4], x.flatten(0, -2), weights[i // 4] * 2)
            for i, x in enumerate(xs)
        ],
        lambda *xs: [
            torch.addmm(x.flatten(0, -2)[:, :1], x.flatten(0, -2), weights[i // 4] * 3)
            for i, x in enumerate(xs)
        ],
    ]
    nodes = peer.calls(functions, *inputs, held=linears)
    assert nodes["FullyConnected"] == 5 * len(inputs)


def test_products_with_computed_weights(peer: Peer) -> None:
    functions = [
        lambda x, w, b: F.linear(x, w, b),
        lambda x, w, b: F.linear(x, w.tanh()),
        lambda x, w, b: x @ w.t(),
        lambda x, w, b: torch.addmm(b, x, w.t()),
        lambda x, w, b: torch.mm(w, x.t()),
    ]
    nodes = peer.calls(functions, torch.randn(5, 9), torch.randn(7, 9), torch.randn(7))
    assert nodes["FullyConnected"] == 5


@DTYPES
def test_batches_of_products(peer: Peer, dtype: torch.dtype) -> None:
    one, other = torch.randn(2, 3, 5, 7).to(dtype), torch.randn(2, 3, 7, 4).to(dtype)
    fixed = torch.randn(6, 7, 4).to(dtype)
    functions = [
        torch.matmul,
        lambda a, b: torch.bmm(a[0], b[0]),
        lambda a, b: torch.bmm(a.flatten(0, 1), fixed),
        lambda a, b: a @ a.transpose(-1, -2),
        lambda a, b: F.scaled_dot_product_attention(a, a, a),
    ]
    nodes = peer.calls(functions, one, other)
    assert nodes["BatchMatrixMultiply"] == 6


@DTYPES
def test_softmax_over_any_dimension(peer: Peer, dtype: torch.dtype) -> None:
    shapes = [(9,), (3, 9), (2, 3, 5), (2, 3, 5, 7)]
    inputs = [(torch.randn(shape) * 4).to(dtype) for shape in shapes]
    nodes = peer.calls([lambda *xs: [x.softmax(d) for x in xs for d in range(x.dim())]], *inputs)
    assert nodes["Softmax"] == sum(map(len, shapes))
