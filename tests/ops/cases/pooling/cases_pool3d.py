"""Cases of pooling in three dimensions, and of adaptive max pooling in two and three."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...harness import FLOATING, INTEGRAL, ErrorCase, Maker, OpCases, Sample

aten = torch.ops.aten
CHANNELS_LAST = (0, 2, 3, 1)
CHANNELS_LAST_3D = (0, 2, 3, 4, 1)
ODD_ORDER = (4, 1, 3, 0, 2)

# (depth, height, width), kernel_size, stride, padding, dilation, ceil_mode
WINDOWS: list[tuple[tuple[int, int, int], Any, Any, Any, Any, bool]] = [
    ((6, 6, 6), [2], [], [0], [1], False),
    ((5, 7, 9), [3, 2, 1], [2, 1, 3], [1, 0, 0], [1], False),
    ((4, 9, 21), [3], [2], [1], [1], True),
    ((7, 9, 12), [2, 3, 3], [1], [1], [3, 1, 2], False),
    ((1, 8, 20), [1, 3, 3], [1, 2, 2], [0, 1, 1], [1], False),
    ((3, 5, 60), [3, 5, 40], [3, 5, 3], [1, 2, 20], [1], True),
    ((2, 3, 700), [2, 2, 3], [2, 1, 1], [1], [1], False),
    ((3, 1, 1), [2, 1, 3], [2], [1, 0, 1], [1], True),
]
# Input sizes and output_size: even and uneven windows, one window, windows that share elements.
ADAPTIVE: list[tuple[tuple[int, ...], list[int]]] = [
    ((6, 8, 10), [3, 2, 5]),
    ((7, 5, 13), [3, 4, 4]),
    ((7, 5, 13), [1, 1, 1]),
    ((3, 4, 5), [5, 4, 9]),
    ((4, 6, 70), [2, 1, 1]),
    ((2, 3, 1100), [1, 3, 2]),
    ((4, 4, 4), [2, 2, 2]),
    ((4, 4, 4), [2, 0, 1]),
]


def volumes(
    make: Maker, size: tuple[int, int, int], **kwargs: Any
) -> Iterator[tuple[torch.Tensor, Any]]:
    """Tensors of every rank and order of dimensions, with an order for the output."""
    five = (2, 3, *size)
    yield make.tensor(3, *size, **kwargs), None
    yield make.tensor(*five, **kwargs), None
    yield make.tensor(*five, order=CHANNELS_LAST_3D, **kwargs), CHANNELS_LAST_3D
    yield make.tensor(*five, order=CHANNELS_LAST_3D, **kwargs), (0, 1, 2, 3, 4)
    yield make.tensor(*five, order=ODD_ORDER, **kwargs), (2, 4, 0, 1, 3)
    yield make.tensor(0, 2, *size, **kwargs), None


def max_pool(make: Maker) -> Iterator[Sample]:
    for size, kernel, stride, padding, dilation, ceil in WINDOWS:
        for x, order in volumes(make, size):
            yield Sample(x, kernel, stride, padding, dilation, ceil, out_dim_order=order)
    for dtype in (*FLOATING, *INTEGRAL):
        low = 0 if dtype == torch.uint8 else -90
        for x, order in volumes(make, (4, 5, 11), dtype=dtype, low=low, high=90):
            yield Sample(x, [3], [2], [1], out_dim_order=order)
    for x, order in volumes(make, (4, 5, 40), special=True):
        yield Sample(x, [3, 2, 2], [1], [1, 0, 1], out_dim_order=order)
        yield Sample(x, [2, 2, 37], [1], out_dim_order=order)
    yield Sample(torch.full((1, 2, 3, 4, 50), -torch.inf), [3, 3, 48], [2], [1])
    yield Sample(torch.full((1, 2, 3, 4, 50), torch.nan), [3, 3, 48], [2], [1])


def avg_pool(make: Maker) -> Iterator[Sample]:
    for size, kernel, stride, padding, dilation, ceil in WINDOWS:
        if dilation != [1] or size[2] < kernel[-1]:  # eager wants the kernel within the input
            continue
        for count in (True, False):
            for x, order in volumes(make, size):
                yield Sample(x, kernel, stride, padding, ceil, count, out_dim_order=order)
        x = make.tensor(2, 3, *size)
        yield Sample(x, kernel, stride, padding, ceil, divisor_override=3)
        yield Sample(x, kernel, stride, padding, ceil, divisor_override=-2)
    for dtype in (*FLOATING, torch.int64):
        for x, order in volumes(make, (4, 5, 11), dtype=dtype, low=-90, high=90):
            yield Sample(x, [3], [2], [1], False, False, out_dim_order=order)
    yield Sample(make.tensor(2, 3, 4, 5, 21, special=True), [2])
    yield Sample(make.tensor(1, 1100, 2, 4, 4, order=CHANNELS_LAST_3D), [2])


def adaptive_avg_pool(make: Maker) -> Iterator[Sample]:
    for size, out in ADAPTIVE:
        for x, order in volumes(make, size):
            yield Sample(x, out, out_dim_order=order)
    for dtype in FLOATING:
        for x, order in volumes(make, (5, 6, 11), dtype=dtype):
            yield Sample(x, [2, 3, 4], out_dim_order=order)


def adaptive_max_pool(make: Maker) -> Iterator[Sample]:
    for size, out in ADAPTIVE:
        for x, order in volumes(make, size):
            yield Sample(x, out, out_dim_order=order)
    for dtype in FLOATING:
        for x, order in volumes(make, (5, 6, 11), dtype=dtype):
            yield Sample(x, [2, 3, 4], out_dim_order=order)
    for x, order in volumes(make, (3, 4, 45), special=True):
        yield Sample(x, [2, 2, 1], out_dim_order=order)


def adaptive_max_pool_2d(make: Maker) -> Iterator[Sample]:
    for size, out in (*ADAPTIVE, ((1, 40, 50), [1, 1, 1])):
        x = make.tensor(2, 3, *size[1:])
        yield Sample(x, out[-2:])
        yield Sample(x[0].clone(), out[-2:])
        yield Sample(
            make.tensor(2, 3, *size[1:], order=CHANNELS_LAST), out[-2:], out_dim_order=CHANNELS_LAST
        )
    for dtype in FLOATING:
        yield Sample(make.tensor(2, 3, 9, 21, dtype=dtype, special=True), [2, 4])
        yield Sample(make.tensor(2, 3, 64, 64, dtype=dtype), [1, 1])
    yield Sample(torch.full((1, 2, 5, 40), torch.nan), [2, 1])
    yield Sample(torch.full((1, 2, 5, 40), -torch.inf), [2, 1])
    yield Sample(make.tensor(0, 2, 5, 5), [3, 3])


def in_float(op: Any) -> Callable[..., torch.Tensor]:
    """Eager by way of float32 for the 16-bit types, which it refuses or rounds many times."""

    def reference(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        half = x.dtype in (torch.float16, torch.bfloat16)
        result: torch.Tensor = op(x.float() if half else x, *args, **kwargs).to(x.dtype)
        return result

    return reference


def max_pool_eager(x: torch.Tensor, *arguments: Any) -> list[torch.Tensor]:
    """Eager, by way of int64: it refuses channels-last int8 beyond 127 pixels."""
    values, indices = aten.max_pool3d_with_indices(
        x if x.is_floating_point() else x.long(), *arguments
    )
    return [values.to(x.dtype), indices]


OPS = [
    OpCases(
        "aten::_adaptive_avg_pool3d.out", adaptive_avg_pool, in_float(aten._adaptive_avg_pool3d)
    ),
    OpCases("aten::adaptive_max_pool2d.out", adaptive_max_pool_2d),
    OpCases("aten::adaptive_max_pool3d.out", adaptive_max_pool),
    # Sums of up to 600 numbers up to 90, in another order than eager's.
    OpCases("aten::avg_pool3d.out", avg_pool, in_float(aten.avg_pool3d), tolerance=(2e-6, 2e-5)),
    OpCases("aten::max_pool3d_with_indices.out", max_pool, max_pool_eager),
]


def error(
    op: str, message: str, *arguments: Any, shape: tuple[int, ...] = (1, 2, 8, 8, 8)
) -> ErrorCase:
    """A call with these arguments between self and outs of the shape [1, 2, 4, 4, 4]."""

    def args(make: Maker) -> list[Any]:
        outs: list[torch.Tensor] = [torch.zeros(1, 2, 4, 4, 4)]
        if "max" in op:
            outs.append(torch.zeros(1, 2, 4, 4, 4, dtype=torch.int64))
        return [make.tensor(*shape), *arguments, *outs]

    return ErrorCase(op, args, message)


MAX, AVG = "aten::max_pool3d_with_indices.out", "aten::avg_pool3d.out"
HUGE = 2**31 - 1
ERRORS = [
    error(
        MAX, "kernel_size has 2 entries, but must have one or three", [2, 2], [], [0], [1], False
    ),
    error(MAX, r"stride\[2\] is 0", [2], [1, 1, 0], [0], [1], False),
    error(MAX, "padding is 2 along dimension 4", [4, 4, 3], [2], [2], [1], False),
    error(MAX, "self has size 8 along dimension 3, which", [2, 9, 2], [], [0], [1], False),
    error(MAX, f"dilation {HUGE}", [HUGE], [1], [0], [HUGE], False),
    error(MAX, "the result has sizes", [2], [1], [0], [1], False),
    error(
        MAX,
        r"self has shape \(2, 8, 8\), but must be \[N, C, D, H, W\]",
        *([2], [], [0], [1], False),
        shape=(2, 8, 8),
    ),
    error(
        MAX,
        r"self has shape \(1, 2, 0, 8, 8\)",
        *([2], [], [0], [1], False),
        shape=(1, 2, 0, 8, 8),
    ),
    error(AVG, "divisor_override is 0", [2], [], [0], False, True, 0),
    error(AVG, "the result has sizes", [3], [1], [0], False, True, None),
    error("aten::_adaptive_avg_pool3d.out", "output_size has 2 entries", [4, 4]),
    error("aten::_adaptive_avg_pool3d.out", r"output_size\[1\] is -4", [4, -4, 4]),
    error("aten::adaptive_max_pool3d.out", r"output_size\[0\] is 4294967296", [2**32]),
    error("aten::adaptive_max_pool3d.out", "the result has sizes", [4, 4, 5]),
    ErrorCase(
        "aten::adaptive_max_pool2d.out",
        lambda make: [
            make.tensor(2, 4, 4, dtype=torch.int64),
            [2],
            *(torch.zeros(2, 2, 2, dtype=torch.int64) for _ in range(2)),
        ],
        "self is int64, but must be floating",
    ),
    ErrorCase(
        "aten::adaptive_max_pool2d.out",
        lambda make: [make.tensor(2, 4, 4), [2], torch.zeros(2, 2, 2), torch.zeros(2, 2, 2)],
        "indices is float32, but must be int64",
    ),
]
