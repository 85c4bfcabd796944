"""Cases of two-dimensional pooling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...harness import FLOATING, INTEGRAL, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)
ODD_ORDER = (3, 1, 0, 2)

# (height, width), kernel_size, stride, padding, dilation, ceil_mode
WINDOWS: list[tuple[tuple[int, int], Any, Any, Any, Any, bool]] = [
    ((8, 8), [2], [], [0], [1], False),
    ((9, 7), [3, 2], [2, 1], [1, 0], [1], False),
    ((9, 40), [3], [2], [1], [1], False),
    ((9, 40), [3], [2], [1], [1], True),
    ((10, 41), [3], [3, 4], [1], [1], True),
    ((12, 23), [3], [1], [1], [2], False),
    ((12, 23), [3, 5], [2, 3], [1, 2], [3, 2], True),
    ((7, 7), [7], [1], [0], [1], False),
    ((5, 60), [5, 40], [5, 3], [2, 20], [1], True),
    ((4, 1300), [2, 3], [2, 1], [1], [1], False),
    ((3, 1), [2, 1], [2, 2], [1, 0], [1], True),
    ((1, 1), [3], [2], [1], [1], False),
    ((1, 2), [2], [3], [0, 1], [1], True),
]


def images(make: Maker, size: tuple[int, int], **kwargs: Any) -> Iterator[tuple[torch.Tensor, Any]]:
    """Tensors of every rank and order of dimensions, with an order for the output."""
    h, w = size
    four = (2, 3, h, w)
    yield make.tensor(3, h, w, **kwargs), None
    yield make.tensor(*four, **kwargs), None
    yield make.tensor(*four, **kwargs), CHANNELS_LAST
    yield make.tensor(*four, order=CHANNELS_LAST, **kwargs), CHANNELS_LAST
    yield make.tensor(*four, order=CHANNELS_LAST, **kwargs), (0, 1, 2, 3)
    yield make.tensor(*four, order=ODD_ORDER, **kwargs), (2, 0, 1, 3)
    yield make.tensor(1, 20, h, w, order=CHANNELS_LAST, **kwargs), CHANNELS_LAST
    yield make.tensor(0, 2, h, w, **kwargs), None


def max_pool(make: Maker) -> Iterator[Sample]:
    for size, kernel, stride, padding, dilation, ceil in WINDOWS:
        for x, order in images(make, size):
            yield Sample(x, kernel, stride, padding, dilation, ceil, out_dim_order=order)
    for dtype in (*FLOATING, *INTEGRAL):
        low = 0 if dtype == torch.uint8 else -90
        # Integers and halves repeat: the first of equal maxima counts.
        for x, order in images(make, (9, 21), dtype=dtype, low=low, high=90):
            yield Sample(x, [3], [2], [1], out_dim_order=order)
    for dtype in (torch.float32, torch.float64, torch.float16):
        for size in ((9, 21), (3, 5)):
            for x, order in images(make, size, dtype=dtype, special=True):
                yield Sample(x, [3, 2], [1], [1, 0], out_dim_order=order)
    yield Sample(torch.full((1, 2, 5, 20), -torch.inf), [3], [2], [1])
    yield Sample(torch.full((1, 2, 5, 20), torch.nan), [3], [2], [1])
    wide = make.tensor(1, 1100, 4, 4)
    yield Sample(wide, [2], out_dim_order=CHANNELS_LAST)
    yield Sample(wide.to(memory_format=torch.channels_last), [2])


def avg_pool(make: Maker) -> Iterator[Sample]:
    for size, kernel, stride, padding, dilation, ceil in WINDOWS:
        if dilation != [1]:
            continue
        for count in (True, False):
            for x, order in images(make, size):
                yield Sample(x, kernel, stride, padding, ceil, count, out_dim_order=order)
        x = make.tensor(2, 3, *size)
        yield Sample(x, kernel, stride, padding, ceil, divisor_override=3)
        yield Sample(x, kernel, stride, padding, ceil, divisor_override=-2)
    for dtype in (*FLOATING, torch.int64):
        for x, order in images(make, (9, 21), dtype=dtype, low=-90, high=90):
            yield Sample(x, [3], [2], [1], False, False, out_dim_order=order)
    yield Sample(make.tensor(2, 3, 4, 21, special=True), [2])
    yield Sample(make.tensor(1, 2, 40, 700), [40, 600], [1])
    yield Sample(make.tensor(1, 1100, 4, 4, order=CHANNELS_LAST), [2])


def adaptive_avg_pool(make: Maker) -> Iterator[Sample]:
    for size, out in (
        ((7, 7), [1, 1]),
        ((7, 7), [7, 7]),
        ((10, 13), [3, 4]),
        ((3, 4), [5, 9]),
        ((5, 1300), [2, 700]),
        ((40, 50), [1, 1]),
        ((40, 50), [2, 1]),
        ((6, 6), [0, 2]),
    ):
        for x, order in images(make, size):
            yield Sample(x, out, out_dim_order=order)
    for dtype in FLOATING:
        for x, order in images(make, (9, 21), dtype=dtype):
            yield Sample(x, [2, 4], out_dim_order=order)
    yield Sample(make.tensor(1, 1100, 7, 7, order=CHANNELS_LAST), [1, 1])


def max_pool_eager(x: torch.Tensor, *arguments: Any) -> list[torch.Tensor]:
    """Eager, by way of int64: it refuses channels-last int8 beyond 127 pixels."""
    values, indices = torch.ops.aten.max_pool2d_with_indices(
        x if x.is_floating_point() else x.long(), *arguments
    )
    return [values.to(x.dtype), indices]


OPS = [
    OpCases("aten::_adaptive_avg_pool2d.out", adaptive_avg_pool),
    # Sums of up to 200 numbers up to 90, in another order than eager's.
    OpCases("aten::avg_pool2d.out", avg_pool, tolerance=(2e-6, 2e-5)),
    OpCases("aten::max_pool2d_with_indices.out", max_pool, max_pool_eager),
]


def max_pool_error(
    message: str, *arguments: Any, shape: tuple[int, ...] = (1, 2, 8, 8)
) -> ErrorCase:
    """A call of max_pool2d with these arguments after self, completed by the defaults."""
    settings = [*arguments, *([[2], [], [0], [1], False][len(arguments) :])]

    def args(make: Maker) -> list[Any]:
        out = torch.zeros(1, 2, 4, 4)
        return [make.tensor(*shape), *settings, out, torch.zeros(1, 2, 4, 4, dtype=torch.int64)]

    return ErrorCase("aten::max_pool2d_with_indices.out", args, message)


def avg_pool_error(message: str, *arguments: Any) -> ErrorCase:
    """The same for avg_pool2d."""
    settings = [*arguments, *([[2], [], [0], False, True, None][len(arguments) :])]
    return ErrorCase(
        "aten::avg_pool2d.out",
        lambda make: [make.tensor(1, 2, 8, 8), *settings, torch.zeros(1, 2, 4, 4)],
        message,
    )


HUGE = 2**62
ERRORS = [
    max_pool_error(r"kernel_size has 3 entries, but must have one or two", [2, 2, 2]),
    max_pool_error(r"kernel_size has 0 entries", []),
    max_pool_error(r"kernel_size\[1\] is 0, but must be from 1", [2, 0]),
    max_pool_error(r"kernel_size\[0\] is 4611686018427387904", [HUGE]),
    max_pool_error(r"stride\[0\] is -1, but must be from 1", [2], [-1]),
    max_pool_error(r"stride has 3 entries", [2], [1, 1, 1]),
    max_pool_error(r"padding\[0\] is -1, but must be from 0", [2], [2], [-1]),
    max_pool_error(
        r"padding is 2 along dimension 2, but at most half of kernel_size 2", [2], [2], [2]
    ),
    max_pool_error(r"dilation\[0\] is 0", [2], [2], [0], [0]),
    max_pool_error(r"self has size 8 along dimension 2, which does not fit kernel_size 9", [9]),
    max_pool_error(r"dilation 2147483647", [2**31 - 1], [1], [0], [2**31 - 1]),
    max_pool_error(r"self has shape \(8, 8\), but must be", shape=(8, 8)),
    max_pool_error(r"self has shape \(1, 0, 8, 8\), but must be", shape=(1, 0, 8, 8)),
    max_pool_error(r"out", [1]),
    avg_pool_error(r"divisor_override is 0", [2], [], [0], False, True, 0),
    avg_pool_error(r"padding is 3 along", [4], [1], [3]),
    avg_pool_error(r"out", [1]),
    ErrorCase(
        "aten::avg_pool2d.out",
        lambda make: [
            make.tensor(1, 2, 8, 8, dtype=torch.int32),
            *([2], [], [0], False, True, None),
            torch.zeros(1, 2, 4, 4, dtype=torch.int32),
        ],
        "self is int32, but must be floating or int64",
    ),
    ErrorCase(
        "aten::max_pool2d_with_indices.out",
        lambda make: [
            make.tensor(1, 2, 8, 8),
            *([2], [], [0], [1], False),
            torch.zeros(1, 2, 4, 4),
            torch.zeros(1, 2, 4, 4, dtype=torch.int32),
        ],
        "indices is int32, but must be int64",
    ),
    ErrorCase(
        "aten::_adaptive_avg_pool2d.out",
        lambda make: [make.tensor(1, 2, 8, 8), [-1, 2], torch.zeros(1, 2, 4, 4)],
        r"output_size\[0\] is -1, but must be from 0",
    ),
    ErrorCase(
        "aten::_adaptive_avg_pool2d.out",
        lambda make: [make.tensor(1, 2, 8, 8), [1, 2, 3], torch.zeros(1, 2, 4, 4)],
        "output_size has 3 entries, but must have one or two",
    ),
]
