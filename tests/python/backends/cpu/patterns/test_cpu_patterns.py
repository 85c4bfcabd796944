"""The cpu backend: rotary embedding, norms and activations that a model writes out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from cpu_models import LAST, Call, X, call, instructions, whole
from torch import nn

from rushlight.schema.cpu_engine import TileOp

Function = Callable[..., torch.Tensor]

# --- pieces ---------------------------------------------------------------------------------------

B, H, L, D = 2, 3, 9, 8
Q = torch.randn(B, H, L, D)
A, C = torch.randn(L, D // 2), torch.randn(L, D // 2)
COS, SIN = torch.randn(L, D), torch.randn(L, D)


def halves(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((-x[..., D // 2 :], x[..., : D // 2]), -1)


def neighbours(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def split(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((first * A - second * C, second * A + first * C), -1)


def unbound(x: torch.Tensor) -> torch.Tensor:
    real, imaginary = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    both = (real * A - imaginary * C, real * C + imaginary * A)
    return torch.stack(both, -1).flatten(-2)


ROTARY: dict[str, Function] = {
    "halves": lambda q: q * COS + halves(q) * SIN,
    "halves, other order": lambda q: SIN * halves(q) + COS * q,
    "neighbours": lambda q: q * COS + neighbours(q) * SIN,
    "split": split,
    "unbound": unbound,
}


@pytest.mark.parametrize("heads_inside", [False, True])
@pytest.mark.parametrize("name", ROTARY)
def test_rotary_embedding_is_one_pass(name: str, heads_inside: bool) -> None:
    function = ROTARY[name]
    if heads_inside:  # as a projection leaves them
        x = Q.transpose(1, 2).contiguous()
        operators = call(lambda x: function(x.transpose(1, 2)).transpose(1, 2), x)
    else:
        operators = call(function, Q)
    assert operators[0] == "Elementwise" and operators[1:] in ([], ["Copy"])


def test_rotary_embedding_of_a_part() -> None:
    cos, sin = torch.randn(L, 4), torch.randn(L, 4)

    def part(q: torch.Tensor) -> torch.Tensor:
        turned, rest = q[..., :4], q[..., 4:]
        half = torch.cat((-turned[..., 2:], turned[..., :2]), -1)
        return torch.cat((turned * cos + half * sin, rest), -1)

    assert call(part, Q) == ["Elementwise", "Copy"]


def test_what_follows_pieces() -> None:
    x, y = torch.randn(2, 3, 7), torch.randn(2, 5, 7)
    assert call(lambda a, b: torch.cat([a, b], 1).relu() + 1, x, y) == ["Elementwise"] * 2
    assert call(lambda a: torch.cat([a.exp(), a, a.sin()], 1), x) == ["Elementwise", "Copy"]
    # What others need as well is stored by itself.
    operators = call(lambda a: ((e := a.exp()), torch.cat([e, a], 2)), x)
    assert sorted(operators) == ["Copy", "Copy", "Elementwise"]
    call(lambda a: torch.cat([a.exp(), a.exp()], 0) * a.mean(0, keepdim=True), x)
    call(lambda a: torch.cat([a > 0, a < 1], 0), x)
    call(lambda a: torch.cat([a, a * 2], 1) + torch.cat([a * 3, a], 1), LAST)
    linear = nn.Linear(7, 7)
    operators = whole(Call(lambda a, b: torch.cat([a, b], 1) * linear(torch.cat([a, b], 1))), x, y)
    assert "Product+" in operators


def test_many_registers_in_pieces() -> None:
    def wide(*inputs: torch.Tensor) -> torch.Tensor:
        terms = [x.exp() for x in inputs]
        terms = [a * b for a in terms for b in terms]
        return torch.cat([sum(terms[1:], terms[0]), inputs[0].sin()])

    operators = call(wide, *(torch.randn(4) for _ in range(20)))
    assert set(operators) == {"Elementwise"}
    assert len(operators) < 40  # of some 800 calls


# --- norms ----------------------------------------------------------------------------------------

WIDTH = 7
W, BIAS = torch.randn(WIDTH), torch.randn(WIDTH)

RMS: dict[str, Function] = {
    "llama": lambda x: W * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)),
    "casts": lambda x: (
        W * (y := x.float()).mul(torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5)).type_as(x)
    ),
    "root": lambda x: x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-6) * W,
    "inverse": lambda x: x * (1 / torch.sqrt(x.square().mean(-1, True) + 1e-6)) * W,
    "power": lambda x: x * (x.square().mean(-1, True) + 1e-6).pow(-0.5),
    "sum": lambda x: x * torch.rsqrt((x * x).sum(-1, keepdim=True) / WIDTH + 1e-6) * (1 + W),
}


@pytest.mark.parametrize("name", RMS)
def test_rms_norm(name: str) -> None:
    assert call(RMS[name], X) == ["Norm"]


def layer(x: torch.Tensor, epsilon: float = 1e-5) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + epsilon)


LAYER: dict[str, Function] = {
    "plain": layer,
    "weights": lambda x: W * layer(x) + BIAS,
    "bias": lambda x: layer(x) + BIAS,
    "variance": lambda x: (
        (x - x.mean(-1, keepdim=True))
        * torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-6)
        * W
        + BIAS
    ),
    "squared twice": lambda x: (
        (x - x.mean(-1, keepdim=True))
        / ((x - x.mean(-1, keepdim=True)).pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    ),
}


@pytest.mark.parametrize("name", LAYER)
def test_layer_norm(name: str) -> None:
    assert call(LAYER[name], X) == ["Norm"]


def test_layer_norm_over_channels() -> None:
    w, c = torch.randn(6, 1, 1), torch.randn(6, 1, 1)

    def channels(x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        return w * ((x - mean) / torch.sqrt(variance + 1e-6)) + c

    assert call(channels, LAST) == ["Norm", "Copy"]


def test_what_is_no_norm() -> None:
    assert "Norm" not in call(lambda x: x * torch.rsqrt(x.pow(2).mean(1, True) + x), X)
    assert "Norm" not in call(lambda x: x * torch.rsqrt(x.pow(3).mean(-1, True).abs() + 1), X)
    assert "Norm" not in call(lambda x: x * torch.rsqrt(x.var(-1, keepdim=True) + 1e-6), X)
    # The mean of another value is taken off.
    operators = call(
        lambda x, y: (d := x - y.mean(-1, True)) / (d.pow(2).mean(-1, True) + 1).sqrt(), X, X + 1
    )
    assert "Reduction" in operators


@pytest.mark.parametrize("correction", [0, 1, 2.5])
def test_variances(correction: float) -> None:
    call(lambda x: x.var(-1, correction=correction), X)
    call(lambda x: x.var((0, 2), correction=correction, keepdim=True) + x, X)
    call(lambda x: x.std(1, correction=correction) - x.var(1), LAST)


# --- activations ----------------------------------------------------------------------------------

ACTIVATIONS: dict[str, Function] = {
    "gelu": F.gelu,
    "gelu, erf": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu, power": lambda x: (
        0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
    ),
    "gelu, products": lambda x: (
        x * 0.5 * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))
    ),
    "quick gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": lambda x: x * torch.sigmoid(x),
    "silu, exp": lambda x: x / (1 + torch.exp(-x)),
    "mish": lambda x: x * torch.tanh(F.softplus(x)),
    "mish, logs": lambda x: x * torch.tanh(torch.log(1 + torch.exp(x))),
    "hardswish": lambda x: x * F.relu6(x + 3) / 6,
    "hardswish, clamp": lambda x: x * torch.clamp(x / 6 + 0.5, 0, 1),
    "hardsigmoid": lambda x: F.relu6(x + 3) / 6,
    "squared relu": lambda x: F.relu(x).square(),
    "log sigmoid": F.logsigmoid,
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "leaky relu": lambda x: torch.maximum(x, 0.1 * x),
    "prelu": nn.PReLU(20, init=0.3),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.7),
    "cube": lambda x: torch.pow(x, 3),
    "fourth power": lambda x: x**4,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_follow_products(name: str) -> None:
    linear = nn.Linear(8, 20)
    model = nn.Sequential(linear, Call(ACTIVATIONS[name]))
    assert whole(model, torch.randn(3, 8) * 3) == ["Product+"]


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("gelu", TileOp.GELU),
        ("gelu, erf", TileOp.GELU),
        ("gelu, tanh", TileOp.GELU_TANH),
        ("gelu, power", TileOp.GELU_TANH),
        ("gelu, products", TileOp.GELU_TANH),
        ("silu", TileOp.SILU),
        ("silu, exp", TileOp.SILU),
        ("mish", TileOp.MISH),
    ],
)
def test_spelled_activations_are_one_instruction(name: str, op: TileOp) -> None:
    function = ACTIVATIONS[name]
    assert instructions(Call(function), X) == [TileOp.LOAD, op, TileOp.STORE]
    for before in (TileOp.ADD_VALUE, TileOp.MUL_VALUE):
        changed = (lambda x: x + 1.5) if before is TileOp.ADD_VALUE else (lambda x: x * 1.5)
        call(lambda x, changed=changed: function(changed(x)) * 2, X)
        code = instructions(Call(lambda x, changed=changed: function(changed(x)) * 2), X)
        assert code == [TileOp.LOAD, before, op, TileOp.MUL_VALUE, TileOp.STORE]
    call(lambda x, y: function(x + y), X, X.flip(0))
    code = instructions(Call(lambda x, y: function(x + y)), X, X.flip(0))
    assert code == [TileOp.LOAD, TileOp.LOAD, TileOp.ADD, op, TileOp.STORE]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 0.5 * x * (1 + torch.erf(x * 0.7)),
        lambda x: x * (1 + torch.erf(x / math.sqrt(2))),
        lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.04 * x**3))),
        lambda x: 0.5 * (x + 1) * (1 + torch.erf(x / math.sqrt(2))),
        lambda x: x * torch.sigmoid(1.702 * x),
        lambda x: (x + 1) * torch.sigmoid(x),
        lambda x: x / (1 + torch.exp(x)),
        lambda x: x * torch.tanh(F.softplus(2 * x)),
    ],
)
def test_what_is_nearly_an_activation_is_none(function: Function) -> None:
    call(function, X)
    known = {TileOp.GELU, TileOp.GELU_TANH, TileOp.SILU, TileOp.MISH}
    assert known.isdisjoint(instructions(Call(function), X))


def test_layers_of_a_language_model(models: ModuleType) -> None:
    case = models.build("llama_tiny")
    operators = Counter(whole(case.module, *case.args, tolerance=2e-4))
    # For each layer: rotary embedding of queries and keys, and four products that are finished.
    assert (
        operators["Elementwise"] == 2 * 2
        and operators["Attention"] == 2
        and operators["Norm"] == 2 * 2 + 1
    )
    assert operators["Copy"] == operators["Reduction"] == 0
