"""The xnnpack backend on quantised patterns that XNNPACK lacks: left out, with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xnnpack_models import left
from xnnpack_quantized import OPS, Integers, lowered

X = torch.randn(3, 64)
IMAGE = torch.randn(2, 4, 6, 6)
IN, FAR = Integers(0.03, -5), Integers(1.0)


Made = Callable[[], torch.Tensor]


def _weight(
    *shape: int,
    axis: int = 0,
    low: int = -127,
    scale: float = 0.01,
    zero_point: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Made:
    """A function that dequantises weights with a scale for each index of a dimension."""
    high = 7 if low == -8 else 127
    data = torch.randint(low, high, shape, dtype=torch.int8)
    scales = torch.full((shape[axis],), 0.01)
    scales[0] = scale
    zeros = torch.full((shape[axis],), zero_point)
    form = (axis, low, high, torch.int8)
    return lambda: OPS.dequantize_per_channel(data, scales, zeros, *form, out_dtype=dtype)


def _groups(size: int, depth: int, bits: int = 4) -> Made:
    """A function that dequantises weights with a scale for each group."""
    half = 1 << (bits - 1)
    data = torch.randint(-half, half, (6, depth), dtype=torch.int8)
    scales = torch.full((6, depth // size), 0.01)
    form = (-half, half - 1, torch.int8, size, torch.float32)
    parameters: Any = (data, scales, None, *form)
    return lambda: OPS.dequantize_per_channel_group(*parameters)  # type: ignore[no-any-return]


def _tokens(*shape: int) -> Made:
    """A function that dequantises a constant with a scale for each row."""
    data = torch.randint(-9, 9, shape, dtype=torch.int8)
    scales, zeros = torch.full((shape[0], 1), 0.01), torch.zeros(shape[0], 1, dtype=torch.int64)
    parameters: Any = (data, scales, zeros, *IN.form[2:], torch.float32)
    return lambda: OPS.dequantize_per_token(*parameters)  # type: ignore[no-any-return]


def _there_and_back(x: torch.Tensor, form: tuple[Any, ...], **options: Any) -> torch.Tensor:
    integers = OPS.quantize_per_tensor(x, *form)
    return OPS.dequantize_per_tensor(integers, *form, **options)  # type: ignore[no-any-return]


def _rows(x: torch.Tensor, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    scale, zero = OPS.choose_qparams(x, low, high, 1e-6, dtype)
    return _there_and_back(x, (scale, zero, low, high, dtype), out_dtype=x.dtype)


def _as(
    x: torch.Tensor, low: int, high: int, dtype: torch.dtype, scale: float = 0.1
) -> torch.Tensor:
    return _there_and_back(x, (scale, 0, low, high, dtype))


class Layer(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)  # type: ignore[no-any-return]


class Model(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.head = Layer(function)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x)  # type: ignore[no-any-return]


def _real(x: torch.Tensor, w: Made) -> torch.Tensor:
    return F.linear(x, w())


def _static(x: torch.Tensor, w: Made) -> torch.Tensor:
    return IN(F.linear(IN(x), w()))  # type: ignore[no-any-return]


def _dynamic(x: torch.Tensor, w: Made) -> torch.Tensor:
    return F.linear(_rows(x), w())


def _half(x: torch.Tensor, w: Made) -> torch.Tensor:
    return F.linear(_rows(x.half()), w())


NINE = torch.full((1,), 9.0)
ODD, NARROW = torch.randn(3, 63), torch.randn(3, 48)
PRODUCTS: list[tuple[str, Any, Made, torch.Tensor]] = [
    ("its input is not", _real, _weight(6, 64), X),
    ("its input is not", lambda x, w: IN(F.linear(x, w())), _weight(6, 64), X),
    ("its input is not", lambda x, w: F.linear(_rows(x, torch.uint8), w()), _weight(6, 64), X),
    ("less than 256 times", lambda x, w: IN(F.linear(FAR(x), w())), _weight(6, 64, scale=10.0), X),
    ("its result is not", lambda x, w: F.linear(IN(x), w()), _weight(6, 64), X),
    ("another dimension", _static, _weight(6, 64, axis=1), X),
    ("another dimension than", _static, _tokens(6, 64), X),
    ("zero points of 0", _static, _weight(6, 64, zero_point=1), X),
    ("a scale is 0,", _static, _weight(6, 64, scale=0.0), X),
    ("a scale is 9.99995e-41,", _static, _weight(6, 64, scale=1e-40), X),
    ("a scale is inf,", _static, _weight(6, 64, scale=float("inf")), X),
    ("a scale is nan,", _dynamic, _weight(6, 64, scale=float("nan")), X),
    ("63 columns", _dynamic, _weight(6, 63, low=-8), ODD),
    ("groups of 16", _dynamic, _groups(16, 64), X),
    ("groups of 24", _dynamic, _groups(24, 48), NARROW),
    ("needs scales for groups there", _half, _weight(6, 64, low=-8, dtype=torch.float16), X),
    ("groups are of 4 bits", _dynamic, _groups(32, 64, bits=8), X),
    ("its weights have scales for groups", _static, _groups(32, 64), X),
    (
        "may only be the input of",
        lambda x, w: F.linear(y := _rows(x), w()) + y[:, :6],
        _weight(6, 64),
        X,
    ),
    (
        *("too large for sums of 32 bits", lambda x, w: IN(F.linear(IN(x), w(), NINE))),
        *(_weight(1, 64, scale=1e-9), X),
    ),
    (
        *("its bias is computed", lambda x, w: IN(F.linear(IN(x), w(), x[0, :6]))),
        *(_weight(6, 64), X),
    ),
    (
        *("weights of 8 bits", lambda x, w: IN(F.conv2d(IN(x), w()))),
        *(_weight(6, 4, 3, 3, low=-8), IMAGE),
    ),
    (
        *("one scale of all", lambda x, w: IN(F.conv_transpose2d(IN(x), w(), groups=2))),
        *(_weight(4, 3, 3, 3, axis=1), IMAGE),
    ),
    (
        *("dense convolutions over two", lambda x, w: F.conv2d(_rows(x), w(), groups=4)),
        *(_weight(4, 1, 3, 3), IMAGE),
    ),
]


@pytest.mark.parametrize(
    ("reason", "function", "weight", "example"), PRODUCTS, ids=[r for r, *_ in PRODUCTS]
)
def test_products_left_out_name_their_layer(
    reason: str, function: Any, weight: Made, example: torch.Tensor
) -> None:
    program = torch.export.export(Model(lambda x: function(x, weight)), (example,))
    reasons = left(lowered(program)).values()
    assert any(re.search(f"^layer head: .*{re.escape(reason)}", r) for r in reasons), reasons


def _plain(data: torch.Tensor) -> Made:
    return lambda: OPS.dequantize_per_tensor(data, *IN.form)  # type: ignore[no-any-return]


PLAIN = _plain(torch.randint(-9, 9, (3, 64), dtype=torch.int8))
ROWS = _tokens(3, 64)
VALUES: list[tuple[Any, str]] = [
    (lambda x: _as(x, 0, 255, torch.uint8).tanh(), "uint8 from 0 to 255"),
    (lambda x: _as(x, -32767, 32767, torch.int16).tanh(), "int16"),
    (lambda x: _as(x, -127, 127, torch.int8).tanh(), "from -127 to 127"),
    (lambda x: _as(x, -128, 127, torch.int8, 1e-39).tanh(), "a scale is 1e-39"),
    (lambda x: _rows(x).tanh(), "may only be the input of"),
    (lambda x: x + PLAIN(), "dequantises a constant"),
    (lambda x: IN(x) + ROWS(), "its values have several scales"),
    (
        lambda x: OPS.dequantize_per_tensor(
            OPS.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8),
            *(0.2, 0, -128, 127, torch.int8),
        ),
        "other numbers elsewhere",
    ),
]


@pytest.mark.parametrize(("function", "reason"), VALUES, ids=[r for _, r in VALUES])
def test_values_left_out_have_their_reason(function: Any, reason: str) -> None:
    reasons = left(lowered(torch.export.export(Model(function), (X,)))).values()
    assert any(re.search(reason, r) for r in reasons), reasons
