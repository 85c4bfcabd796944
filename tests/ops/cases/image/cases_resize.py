"""Cases of resizing images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...harness import FLOATING, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)

# (height, width), output_size, scale_factors
RESIZES: list[tuple[tuple[int, int], Any, Any]] = [
    ((4, 5), None, [2.0, 2.0]),
    ((4, 5), [8, 10], None),
    ((4, 5), [4, 5], None),
    ((7, 9), [3, 5], None),
    ((7, 9), [1, 1], None),
    ((1, 1), [5, 4], None),
    ((7, 9), None, [1.7, 2.3]),
    ((7, 9), None, [0.4, 0.6]),
    ((3, 700), None, [1.5, 2.0]),
    ((3, 1500), [4, 300], None),
    ((13, 17), [29, 61], None),
    ((50, 60), [7, 131], None),
    ((4, 5), None, [1.2, 1.1]),
    ((4, 5), None, [2.2, 1.1]),
    ((60, 70), None, [2.01, 1.01]),
]


def images(make: Maker, size: tuple[int, int], **kwargs: Any) -> Iterator[tuple[torch.Tensor, Any]]:
    """Tensors in several orders of dimensions, with an order for the output."""
    shape = (2, 3, *size)
    yield make.tensor(*shape, **kwargs), None
    yield make.tensor(*shape, **kwargs), CHANNELS_LAST
    yield make.tensor(*shape, order=CHANNELS_LAST, **kwargs), CHANNELS_LAST
    yield make.tensor(*shape, order=CHANNELS_LAST, **kwargs), (0, 1, 2, 3)
    yield make.tensor(*shape, order=(3, 1, 0, 2), **kwargs), (2, 0, 1, 3)


def nearest(make: Maker) -> Iterator[Sample]:
    for size, out, factors in RESIZES:
        for x, order in images(make, size):
            yield Sample(x, out, factors, out_dim_order=order)
    for dtype in (*FLOATING, torch.uint8):
        for x, order in images(make, (5, 6), dtype=dtype, low=0, high=90):
            yield Sample(x, None, [2.5, 2.0], out_dim_order=order)
    yield Sample(make.tensor(0, 3, 4, 5), None, [2.0, 2.0])


def bilinear(make: Maker) -> Iterator[Sample]:
    for align in (False, True):
        for size, out, factors in RESIZES:
            for x, order in images(make, size):
                yield Sample(x, out, align, factors, out_dim_order=order)
        for dtype in FLOATING:
            for x, order in images(make, (5, 6), dtype=dtype):
                yield Sample(x, [9, 20], align, None, out_dim_order=order)
    yield Sample(make.tensor(1, 700, 4, 5, order=CHANNELS_LAST), None, False, [2.0, 2.0])
    wide = make.tensor(1, 700, 4, 5, order=CHANNELS_LAST, dtype=torch.float16)
    yield Sample(wide, None, False, [2.0, 2.0])
    yield Sample(make.tensor(0, 3, 4, 5), None, False, [2.0, 2.0])


OPS = [
    OpCases("aten::upsample_bilinear2d.vec_out", bilinear, tolerance=(1e-5, 2e-5)),
    OpCases("aten::upsample_nearest2d.vec_out", nearest),
]


def error(
    message: str, output_size: Any, factors: Any, shape: tuple[int, ...] = (1, 2, 4, 4)
) -> ErrorCase:
    def args(make: Maker) -> list[Any]:
        return [make.tensor(*shape), output_size, factors, torch.zeros(1, 2, 8, 8)]

    return ErrorCase("aten::upsample_nearest2d.vec_out", args, message)


ERRORS = [
    error("one of output_size and scale_factors must be given", None, None),
    error("one of output_size and scale_factors must be given", [8, 8], [2.0, 2.0]),
    error("output_size has 1 entries, but must have two", [8], None),
    error("scale_factors has 3 entries", None, [2.0, 2.0, 2.0]),
    error("would have size 0 in dimension 2", [0, 8], None),
    error("would have size -8 in dimension 3", None, [2.0, -2.0]),
    error("would have size nan", None, [float("nan"), 2.0]),
    error("would have size inf", None, [2.0, float("inf")]),
    error("would have size 0.4 ", None, [0.1, 2.0]),
    error(r"input has shape \(2, 4, 4\), but must be", [8, 8], None, shape=(2, 4, 4)),
    error(r"input has shape \(1, 2, 0, 4\)", [8, 8], None, shape=(1, 2, 0, 4)),
    error("out", [9, 9], None),
    ErrorCase(
        "aten::upsample_bilinear2d.vec_out",
        lambda make: [
            make.tensor(1, 2, 4, 4, dtype=torch.int32),
            *([8, 8], False, None, torch.zeros(1, 2, 8, 8, dtype=torch.int32)),
        ],
        "input is int32, but must be floating or uint8",
    ),
]
