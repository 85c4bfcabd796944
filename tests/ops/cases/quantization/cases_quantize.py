"""Cases of quantization: results are the functional library's, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed

from ...cases.image.cases_resize import CHANNELS_LAST
from ...harness import ErrorCase, Maker, OpCases, Sample

quantized = torch.ops.quantized_decomposed
HALVES = (torch.float16, torch.bfloat16)
# type, and the bounds that programs use for it
TYPES = [
    (torch.int8, -128, 127),
    (torch.int8, -8, 7),
    (torch.uint8, 0, 255),
    (torch.int16, -32768, 32767),
    (torch.int32, -(2**23), 2**23),
]
EXACT = (0.0, 0.0)


def floats(make: Maker) -> Iterator[torch.Tensor]:
    """Inputs of quantization, with many ties."""
    yield make.tensor(3, 700)
    yield (make.tensor(5, 7, low=-200, high=200).round() / 2).reshape(5, 7)
    yield make.tensor(2, 3, 4, 5, order=CHANNELS_LAST)
    for dtype in HALVES:
        yield make.tensor(6, 9, dtype=dtype)
    yield make.tensor(0, 4)


def whole(make: Maker, dtype: torch.dtype, low: int, high: int) -> Iterator[torch.Tensor]:
    """Inputs of dequantization."""
    bounds = {"low": low, "high": high, "dtype": dtype}
    yield make.tensor(3, 700, **bounds)
    yield make.tensor(2, 3, 4, 5, order=CHANNELS_LAST, **bounds)
    yield make.tensor(0, 4, **bounds)


def scalars(kind: str) -> list[Callable[..., list[Any]]]:
    """How scale, zero point and bounds are given."""
    number = torch.tensor
    if kind == "numbers":
        return [lambda s, z, low, high: [s, z, low, high]]
    if kind == "tensors":
        return [
            lambda s, z, low, high: [number([s]), number([z]), low, high],
            lambda s, z, low, high: [
                number(s, dtype=torch.float64),
                number(z, dtype=torch.int32),
                low,
                high,
            ],
        ]
    return [lambda s, z, low, high: [number(s), number(z), number(low), number(high)]]


def by_tensor(kind: str) -> Callable[[Maker], Iterator[Sample]]:
    def samples(make: Maker) -> Iterator[Sample]:
        for dtype, low, high in TYPES:
            for scalars_of_kind in scalars(kind):
                for x in floats(make):
                    for scale, zero in ((0.037, 3), (0.5, 0), (1e-3, -7)):
                        yield Sample(x, *scalars_of_kind(scale, zero, low, high), dtype)
        if kind == "numbers":
            yield Sample(make.tensor(), 0.1, 0, -128, 127, torch.int8)
            odd = torch.tensor([math.inf, -math.inf, 1e30, -1e30, 0.0])
            yield Sample(odd, 0.1, 0, -128, 127, torch.int8)

    return samples


def back_by_tensor(kind: str) -> Callable[[Maker], Iterator[Sample]]:
    def samples(make: Maker) -> Iterator[Sample]:
        for dtype, low, high in TYPES:
            for scalars_of_kind in scalars(kind):
                for x in whole(make, dtype, low, high):
                    for scale, zero in ((0.037, 3), (1e-3, -7)):
                        yield Sample(x, *scalars_of_kind(scale, zero, low, high), dtype)
                        for out in (torch.float64, *HALVES):
                            rest = scalars_of_kind(scale, zero, low, high)
                            yield Sample(x, *rest, dtype, out_dtype=out)

    return samples


def params(make: Maker, *shape: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Scales and zero points of all types."""
    for real in (torch.float32, torch.float64):
        for zero in (torch.int32, torch.int64, torch.float32):
            scales = make.tensor(*shape, dtype=real, low=0.01, high=0.2)
            yield scales, make.tensor(*shape, low=-9, high=9).round().to(zero)


def by_channel(make: Maker) -> Iterator[Sample]:
    for dtype, low, high in TYPES:
        for x in floats(make):
            for axis in range(x.dim()):
                for scales, zeros in params(make, x.shape[axis]):
                    yield Sample(x, scales, zeros, axis, low, high, dtype)


def back_by_channel(make: Maker) -> Iterator[Sample]:
    for dtype, low, high in TYPES:
        for x in whole(make, dtype, low, high):
            for axis in (*range(x.dim()), -1):
                for scales, zeros in params(make, x.shape[axis]):
                    yield Sample(x, scales, zeros, axis, low, high, dtype)
                yield Sample(x, scales, None, axis, low, high, dtype)
                yield Sample(x, scales, zeros, axis, low, high, dtype, out_dtype=torch.float16)


def by_token(make: Maker) -> Iterator[Sample]:
    for dtype, low, high in TYPES:
        for x in floats(make):
            for scales, zeros in params(make, *x.shape[:-1], 1):
                yield Sample(x, scales, zeros, low, high, dtype)


def back_by_token(make: Maker) -> Iterator[Sample]:
    for dtype, low, high in TYPES:
        for x in whole(make, dtype, low, high):
            for scales, zeros in params(make, *x.shape[:-1], 1):
                for out in (torch.float32, torch.float16, torch.float64):
                    yield Sample(x, scales, zeros, low, high, dtype, out)


def by_group(make: Maker) -> Iterator[Sample]:
    for dtype, low, high in TYPES:
        for scales, zeros in params(make, 6, 4):
            yield Sample(make.tensor(6, 32), scales, zeros, low, high, dtype, 8)
        for scales, zeros in params(make, 6, 1):
            yield Sample(make.tensor(6, 32), scales, zeros, low, high, dtype, 128)


def back_by_group(make: Maker) -> Iterator[Sample]:
    for dtype, low, high in TYPES:
        x = make.tensor(6, 32, dtype=dtype, low=low, high=high)
        for scales, zeros in params(make, 6, 4):
            for out in (torch.float32, torch.bfloat16):
                yield Sample(x, scales, zeros, low, high, dtype, 8, out)
        yield Sample(x, scales, None, low, high, dtype, 8, torch.float32)


def ranges(make: Maker) -> Iterator[Sample]:
    for dtype in (torch.float32, *HALVES):
        for low, high in ((-5, 5), (2, 9), (-9, -1), (0, 0)):
            x = make.tensor(3, 700, dtype=dtype, low=low, high=high)
            yield Sample(x, -128, 127, 1.1920928955078125e-07, torch.int8)
            yield Sample(x, 0, 255, 0.01, torch.uint8)
    yield Sample(torch.tensor([1.0, math.inf]), -128, 127, 1e-5, torch.int8)
    yield Sample(torch.tensor([-math.inf, math.inf]), -128, 127, 1e-5, torch.int8)


def token_ranges(make: Maker) -> Iterator[Sample]:
    for dtype in (torch.float32, *HALVES):
        for low, high in ((-5, 5), (2, 9), (-9, -1), (0, 0), (-0.01, 60)):
            yield Sample(make.tensor(50, 70, dtype=dtype, low=low, high=high), torch.int8)
    yield Sample(make.tensor(2, 3, 1500), torch.int8)
    yield Sample(make.tensor(0, 3), torch.int8)


def case(name: str, samples: Callable[[Maker], Iterator[Sample]], overload: str = "") -> OpCases:
    """Cases of one operator: its functional overload is the reference."""
    out = {"": "out", "tensor": "Tensor_out", "tensor2": "tensor2_out"}[overload]
    reference = getattr(getattr(quantized, name), overload or "default")
    return OpCases(f"quantized_decomposed::{name}.{out}", samples, reference, tolerance=EXACT)


OPS = [
    case("choose_qparams", ranges, "tensor"),
    case("choose_qparams_per_token_asymmetric", token_ranges),
    case("choose_qparams_symmetric", ranges, "tensor"),
    case("dequantize_per_channel", back_by_channel),
    case("dequantize_per_channel_group", back_by_group),
    case("dequantize_per_tensor", back_by_tensor("numbers")),
    case("dequantize_per_tensor", back_by_tensor("tensors"), "tensor"),
    case("dequantize_per_tensor", back_by_tensor("all tensors"), "tensor2"),
    case("dequantize_per_token", back_by_token),
    case("quantize_per_channel", by_channel),
    case("quantize_per_channel_group", by_group),
    case("quantize_per_tensor", by_tensor("numbers")),
    case("quantize_per_tensor", by_tensor("tensors"), "tensor"),
    case("quantize_per_tensor", by_tensor("all tensors"), "tensor2"),
    case("quantize_per_token", by_token),
]


def bytes_of(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.int8)


def error(name: str, message: str, *args: Any) -> ErrorCase:
    return ErrorCase(f"quantized_decomposed::{name}", lambda make: list(args), message)


X = torch.ones(2, 4)
CHAR = 1  # the number of int8
ONE = torch.ones(1)
ERRORS = [
    error(
        "quantize_per_tensor.out",
        "quant_min is -129 and quant_max 127, which is not a range of int8",
        *(X, 0.1, 0, -129, 127, CHAR, bytes_of(2, 4)),
    ),
    error(
        "quantize_per_tensor.out",
        "quant_min is 5 and quant_max 4",
        *(X, 0.1, 0, 5, 4, CHAR, bytes_of(2, 4)),
    ),
    error(
        "quantize_per_tensor.out",
        "dtype is 0, but out is int8",
        *(X, 0.1, 0, -128, 127, 0, bytes_of(2, 4)),
    ),
    error(
        "quantize_per_tensor.out",
        "input is float64, but must be float32",
        *(X.double(), 0.1, 0, -128, 127, CHAR, bytes_of(2, 4)),
    ),
    error(
        "quantize_per_tensor.out",
        "out is int64; quantized types are",
        *(X, 0.1, 0, -128, 127, 4, torch.zeros(2, 4).long()),
    ),
    error(
        "quantize_per_tensor.Tensor_out",
        "scale has shape .2,., but must have one element",
        *(X, torch.ones(2), ONE, -128, 127, CHAR, bytes_of(2, 4)),
    ),
    error(
        "dequantize_per_tensor.out",
        "out is int64, but must be floating",
        *(bytes_of(2, 4), 0.1, 0, -128, 127, CHAR, None, torch.zeros(2, 4).long()),
    ),
    error(
        "quantize_per_channel.out",
        "axis|dim is 2",
        *(X, ONE, ONE, 2, -128, 127, CHAR, bytes_of(2, 4)),
    ),
    error(
        "quantize_per_channel.out",
        "scales has shape .1,., but must have 4 elements",
        *(X, ONE, ONE, 1, -128, 127, CHAR, bytes_of(2, 4)),
    ),
    error(
        "dequantize_per_channel.out",
        "zero_points is int8, but must be",
        *(bytes_of(2, 4), torch.ones(4), bytes_of(4), 1, -128, 127, CHAR, None, X.clone()),
    ),
    error(
        "quantize_per_channel_group.out",
        "group_size is 3; it must be at least 2 and divide the rows",
        *(X, ONE, ONE, -128, 127, CHAR, 3, bytes_of(2, 4)),
    ),
    error(
        "quantize_per_token.out",
        "scales is float16, but must be float32 or float64",
        *(X, torch.ones(2, 1).half(), torch.ones(2, 1), -128, 127, CHAR, bytes_of(2, 4)),
    ),
    error(
        "choose_qparams.Tensor_out",
        "input holds a NaN",
        *(torch.tensor([math.nan]), -128, 127, 1e-5, CHAR, ONE.double(), ONE.long()),
    ),
    error(
        "choose_qparams.Tensor_out",
        "input has no elements",
        *(torch.ones(0), -128, 127, 1e-5, CHAR, ONE.double(), ONE.long()),
    ),
    error(
        "choose_qparams.Tensor_out",
        "quant_min is 3, but must be less than quant_max, 3",
        *(X, 3, 3, 1e-5, CHAR, ONE.double(), ONE.long()),
    ),
    error(
        "choose_qparams_per_token_asymmetric.out",
        "input has shape .3, 0.; tokens are",
        *(torch.ones(3, 0), CHAR, torch.ones(3, 1).double(), torch.ones(3, 1).long()),
    ),
]
