"""Cases of resizing along one, two and three axes, cubic and antialiased."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...cases.image.cases_resize import CHANNELS_LAST
from ...harness import FLOATING, ErrorCase, Maker, OpCases, Sample

# sizes, output_size, scale factors; as many of each as there are axes are used
AXES: list[tuple[tuple[int, int, int], list[int], list[float | None]]] = [
    ((4, 5, 3), [8, 10, 6], [None, None, None]),
    ((4, 5, 3), [8, 10, 6], [2.0, 2.0, 2.0]),
    ((5, 7, 9), [3, 3, 5], [None, None, None]),
    ((5, 7, 9), [1, 1, 1], [None, None, None]),
    ((1, 1, 1), [2, 5, 4], [None, None, None]),
    ((5, 7, 9), [8, 11, 20], [1.7, 1.6, 2.3]),
    ((5, 7, 9), [2, 2, 5], [0.4, 0.3, 0.6]),
    ((2, 3, 700), [3, 4, 1050], [None, 1.5, 1.5]),
    ((3, 13, 17), [5, 29, 61], [None, None, None]),
    ((2, 40, 51), [3, 3, 4], [None, None, None]),
    ((5, 7, 9), [5, 7, 9], [1.15, 1.1, 1.05]),
    ((5, 7, 9), [10, 7, 18], [2.15, 1.1, 2.05]),
    ((5, 7, 9), [5, 11, 9], [1.15, 1.6, 1.05]),
]
ORDERS = {1: (0, 2, 1), 2: CHANNELS_LAST, 3: (0, 2, 3, 4, 1)}


def volumes(
    make: Maker, dims: int, sizes: Any, rows_only: bool = False, **kwargs: Any
) -> Iterator[tuple[Any, Any]]:
    """An input of that many spatial axes, and the order of dimensions of its output."""
    shape = (2, 3, *sizes[3 - dims :])
    yield make.tensor(*shape, **kwargs), None
    if rows_only:
        return
    last = ORDERS[dims]
    yield make.tensor(*shape, order=last, **kwargs), last
    yield make.tensor(*shape, order=last, **kwargs), tuple(range(dims + 2))


def resizes(
    dims: int, dtypes: Any, aligns: tuple[bool, ...] = (), special: bool = True
) -> Callable[[Maker], Iterator[Sample]]:
    """Samples of `op(input, output_size, [align_corners], *scales)`."""

    def samples(make: Maker) -> Iterator[Sample]:
        for leading in [(align,) for align in aligns] or [()]:
            for sizes, out, factors in AXES:
                for x, order in volumes(make, dims, sizes):
                    rest = (out[3 - dims :], *leading, *factors[3 - dims :])
                    yield Sample(x, *rest, out_dim_order=order)
            for dtype in dtypes:
                low, high = (0, 255) if dtype == torch.uint8 else (-5, 5)
                # Eager fails on single pixels and channels-last images of uint8 if they are resized
                # in fixed-point numbers.
                rows_only = dtype == torch.uint8 and bool(aligns)
                for sizes, out, factors in AXES:
                    rest = (out[3 - dims :], *leading, *factors[3 - dims :])
                    if rows_only and 1 in (sizes[2], out[2]):
                        continue
                    images = volumes(make, dims, sizes, rows_only, dtype=dtype, low=low, high=high)
                    for x, order in images:
                        yield Sample(x, *rest, out_dim_order=order)
            if dims > 1:
                # Large, and of few or many channels: eager's kernels differ.
                for channels in (3, 4):
                    x = make.tensor(1, channels, *[2, 40, 40][-dims:], order=ORDERS[dims])
                    rest = ([4, 40, 91][-dims:], *leading, *[2.2, 1.01, 2.3][-dims:])
                    yield Sample(x, *rest, out_dim_order=ORDERS[dims])
            empty = make.tensor(0, 3, *[4] * dims)
            scales = [None] * dims
            yield Sample(empty, [5] * dims, *leading, *scales)
            if special:
                odd = make.tensor(1, 2, *[6] * dims, special=True)
                yield Sample(odd, [9] * dims, *leading, *scales)
            # What is not finite does not spread along an axis that keeps its size.
            single = torch.zeros(1, 2, *[6] * dims)
            single.view(-1)[8] = float("inf")
            yield Sample(single, [6] * dims, *leading, *scales)

    return samples


def in_float(name: str) -> Callable[..., torch.Tensor]:
    """Eager's operator, which computes in the half types; here they are computed in float32."""
    op = getattr(torch.ops.aten, name).default

    def reference(x: torch.Tensor, *rest: Any) -> torch.Tensor:
        half = x.dtype in HALVES
        return op(x.float(), *rest).to(x.dtype) if half else op(x, *rest)

    return reference


def blending(name: str, dims: int, dtypes: Any, special: bool = False) -> OpCases:
    """Cases of an operator that computes with the elements."""
    samples = resizes(dims, dtypes, BOTH, special)
    return OpCases(f"aten::{name}.out", samples, in_float(name), tolerance=CLOSE)


BOTH = (False, True)
CLOSE = (1e-5, 2e-5)
HALVES = (torch.float16, torch.bfloat16)
COPIED = (*FLOATING, torch.uint8)
BYTES = (torch.float64, torch.uint8)

OPS = [
    blending("_upsample_bicubic2d_aa", 2, BYTES),
    blending("_upsample_bilinear2d_aa", 2, BYTES),
    OpCases("aten::_upsample_nearest_exact1d.out", resizes(1, COPIED)),
    OpCases("aten::_upsample_nearest_exact2d.out", resizes(2, COPIED)),
    OpCases("aten::_upsample_nearest_exact3d.out", resizes(3, COPIED)),
    blending("upsample_bicubic2d", 2, (*BYTES, *HALVES)),
    blending("upsample_bilinear2d", 2, COPIED),
    blending("upsample_linear1d", 1, FLOATING, special=True),
    OpCases("aten::upsample_nearest1d.out", resizes(1, COPIED)),
    OpCases("aten::upsample_nearest2d.out", resizes(2, COPIED)),
    OpCases("aten::upsample_nearest3d.out", resizes(3, COPIED)),
    blending("upsample_trilinear3d", 3, FLOATING),
]


def bicubic_error(message: str, size: list[int], dtype: torch.dtype = torch.float32) -> ErrorCase:
    def args(make: Maker) -> list[Any]:
        x = make.tensor(1, 2, 4, 4, dtype=dtype)
        return [x, size, False, None, None, torch.zeros(1, 2, 8, 8, dtype=dtype)]

    return ErrorCase("aten::upsample_bicubic2d.out", args, message)


ERRORS = [
    bicubic_error("input is int32, but must be floating or uint8", [8, 8], torch.int32),
    bicubic_error("output_size has 3 entries, but must have two", [8, 8, 8]),
    bicubic_error("would have size -1 in dimension 3", [8, -1]),
    bicubic_error("out", [8, 9]),
    ErrorCase(
        "aten::upsample_trilinear3d.out",
        lambda make: [
            make.tensor(1, 2, 4, 4),
            *([4, 8, 8], False, None, None, None, torch.zeros(1, 2, 4, 8, 8)),
        ],
        r"input has shape \(1, 2, 4, 4\), but must be \[N, C, D, H, W\]",
    ),
    ErrorCase(
        "aten::upsample_linear1d.out",
        lambda make: [
            make.tensor(1, 2, 4, dtype=torch.int64),
            *([8], False, None, torch.zeros(1, 2, 8, dtype=torch.int64)),
        ],
        "input is int64, but must be floating",
    ),
    ErrorCase(
        "aten::upsample_nearest1d.out",
        lambda make: [make.tensor(1, 2, 4), [8], None, torch.zeros(1, 2, 8, dtype=torch.int64)],
        "input is float32, but out is int64",
    ),
]
