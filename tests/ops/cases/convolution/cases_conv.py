"""Cases of aten::convolution in one to three dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ...harness import FLOATING, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)
CHANNELS_LAST_3D = (0, 2, 3, 4, 1)


def case(
    make: Maker,
    shape: Sequence[int],
    out_channels: int,
    kernel: Sequence[int],
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    transposed: bool = False,
    output_padding: Sequence[int] = (0,),
    groups: int = 1,
    bias: bool = True,
    dtype: torch.dtype = torch.float32,
    order: Sequence[int] | None = None,
    weight_order: Sequence[int] | None = None,
    out_dim_order: Sequence[int] | None = None,
) -> Sample:
    """One call on random values from -1 to 1 (integers: -4 to 4)."""

    def tensor(*sizes: int, order: Sequence[int] | None = None) -> torch.Tensor:
        limit = 1.0 if dtype.is_floating_point else 4.0
        return make.tensor(*sizes, low=-limit, high=limit, dtype=dtype, order=order)

    channels = shape[1]
    if transposed:
        weight = tensor(channels, out_channels // groups, *kernel, order=weight_order)
    else:
        weight = tensor(out_channels, channels // groups, *kernel, order=weight_order)
    spatial = len(kernel)

    def each(values: Sequence[int]) -> list[int]:
        return list(values) if len(values) == spatial else [values[0]] * spatial

    return Sample(
        tensor(*shape, order=order),
        weight,
        tensor(out_channels) if bias else None,
        each(stride),
        each(padding),
        each(dilation),
        transposed,
        each(output_padding),
        groups,
        out_dim_order=out_dim_order,
    )


def two_dimensional(make: Maker) -> Iterator[Sample]:
    # Pointwise, "same", strided, asymmetric, dilated, wide kernels; sizes around the panels.
    yield case(make, (2, 20, 9, 7), 33, (1, 1))
    yield case(make, (1, 40, 8, 8), 20, (1, 1), (2,))
    yield case(make, (2, 5, 13, 11), 17, (3, 3), padding=(1,))
    yield case(make, (1, 5, 13, 40), 17, (3, 3), padding=(1,), bias=False)
    yield case(make, (1, 3, 33, 35), 16, (7, 7), (2,), (3,))
    yield case(make, (1, 3, 12, 14), 4, (2, 5), (3, 2), (1, 2), (2, 1))
    yield case(make, (1, 3, 32, 32), 24, (16, 16), (16,))
    yield case(make, (2, 4, 6, 6), 5, (3, 3), padding=(4,), dilation=(3,))
    yield case(make, (1, 130, 5, 6), 40, (3, 3), padding=(1,))
    yield case(make, (1, 2, 3, 3), 2, (3, 3))
    yield case(make, (1, 9, 1, 1), 3, (1, 1))
    yield case(make, (2, 12, 7, 9), 18, (3, 3), padding=(1,), groups=3)
    yield case(make, (2, 4, 7, 9), 4, (3, 3), (1, 2), (1,), groups=2)
    yield case(make, (0, 3, 5, 5), 4, (3, 3))


def depthwise(make: Maker) -> Iterator[Sample]:
    for order in (None, CHANNELS_LAST):
        for stride, padding, dilation in [(1, 1, 1), (2, 1, 1), (3, 0, 1), (1, 2, 2), (2, 3, 2)]:
            for size in ((11, 70), (7, 7), (6, 15)):
                yield case(
                    make,
                    (2, 32, *size),
                    32,
                    (3, 3),
                    (stride,),
                    (padding,),
                    (dilation,),
                    groups=32,
                    order=order,
                )
        yield case(make, (1, 16, 40, 5), 16, (5, 5), padding=(2,), groups=16, order=order)
        yield case(make, (1, 16, 9, 9), 16, (9, 9), padding=(4,), groups=16, order=order)
        yield case(make, (1, 16, 90, 110), 16, (3, 3), (2, 1), groups=16, order=order)
    yield case(make, (1, 6, 9, 9), 12, (3, 3), padding=(1,), groups=6)
    yield case(make, (1, 5, 9, 9), 5, (3, 2), bias=False, groups=5)
    # Channels that are no whole vectors, or fewer than one.
    for channels in (7, 21, 40, 72):
        wide: dict[str, Any] = {"groups": channels, "order": CHANNELS_LAST}
        yield case(make, (1, channels, 6, 6), channels, (3, 3), **wide)
        yield case(make, (1, channels, 6, 6), channels, (3, 3), bias=False, **wide)


def layouts(make: Maker) -> Iterator[Sample]:
    """Input, weight and output in any of the two orders of dimensions."""
    orders = (None, CHANNELS_LAST)
    for order in orders:
        for weight_order in orders:
            for out_order in ((0, 1, 2, 3), CHANNELS_LAST):
                options: dict[str, Any] = {
                    "order": order,
                    "weight_order": weight_order,
                    "out_dim_order": out_order,
                }
                yield case(make, (2, 20, 9, 8), 35, (3, 3), padding=(1,), **options)
                yield case(make, (2, 20, 9, 8), 35, (1, 1), **options)
                yield case(make, (1, 8, 9, 8), 6, (3, 2), (2,), groups=2, **options)
    yield case(make, (2, 6, 9, 8), 5, (3, 3), order=(3, 1, 0, 2), out_dim_order=(2, 0, 3, 1))
    yield case(make, (1, 300, 6, 5), 33, (3, 3), padding=(1,), order=CHANNELS_LAST)


def one_dimensional(make: Maker) -> Iterator[Sample]:
    yield case(make, (2, 6, 50), 9, (3,), padding=(1,))
    yield case(make, (1, 6, 50), 9, (10,), (5,), bias=False)
    yield case(make, (1, 6, 50), 6, (3,), dilation=(4,), groups=6)
    yield case(make, (1, 6, 50), 4, (1,))
    yield case(make, (1, 6, 21), 4, (4,), (3,), (1,), transposed=True, output_padding=(2,))
    yield case(make, (2, 6, 20), 4, (3,), order=(0, 2, 1))


def three_dimensional(make: Maker) -> Iterator[Sample]:
    yield case(make, (1, 3, 5, 6, 7), 8, (3, 3, 3), padding=(1,))
    yield case(make, (2, 4, 6, 6, 9), 6, (2, 3, 1), (2, 1, 3), (1, 0, 0), (1, 2, 1), groups=2)
    yield case(make, (1, 4, 6, 6, 6), 4, (3, 3, 3), groups=4)
    yield case(make, (1, 3, 4, 5, 6), 5, (3, 3, 3), padding=(1,), order=CHANNELS_LAST_3D)
    yield case(
        make, (1, 3, 3, 4, 5), 2, (2, 3, 2), (2,), (1,), transposed=True, output_padding=(1, 0, 1)
    )


def transposed(make: Maker) -> Iterator[Sample]:
    for kernel, stride, padding, dilation, output_padding in [
        ((2, 2), (2,), (0,), (1,), (0,)),
        ((4, 4), (2,), (1,), (1,), (0,)),
        ((3, 3), (2,), (1,), (1,), (1,)),
        ((3, 3), (1,), (1,), (1,), (0,)),
        ((3, 2), (3, 2), (2, 0), (2, 3), (1, 2)),
        ((3, 3), (4,), (0,), (2,), (3,)),
        ((5, 5), (2,), (0,), (2,), (0,)),
        ((1, 1), (2,), (0,), (1,), (0,)),
    ]:
        for groups in (1, 2):
            yield case(
                make,
                (2, 6, 7, 9),
                10,
                kernel,
                stride,
                padding,
                dilation,
                True,
                output_padding,
                groups,
            )
        yield case(
            make,
            (1, 6, 7, 9),
            10,
            kernel,
            stride,
            padding,
            dilation,
            True,
            output_padding,
            order=CHANNELS_LAST,
            weight_order=CHANNELS_LAST,
            bias=False,
        )
    yield case(make, (1, 4, 5, 5), 4, (3, 3), (2,), transposed=True, groups=4)


def small_groups(make: Maker) -> Iterator[Sample]:
    """Groups of few channels that lie side by side: fewer than a vector, and more than two."""
    for groups, ins, outs in [(3, 5, 7), (2, 1, 20), (4, 16, 16), (2, 40, 32), (2, 3, 33)]:
        for dtype in (torch.float32, torch.bfloat16):
            for transposed in (False, True):
                for stride, padding, dilation in [(1, 1, 1), (3, 2, 2)]:
                    yield case(
                        make,
                        (2, groups * ins, 7, 10),
                        groups * outs,
                        (3, 2),
                        (stride,),
                        (padding,),
                        (dilation,),
                        transposed,
                        groups=groups,
                        dtype=dtype,
                        order=CHANNELS_LAST,
                        bias=not transposed,
                    )
    wide: dict[str, Any] = {"groups": 2, "order": CHANNELS_LAST}
    yield case(make, (1, 8, 5, 9), 6, (1, 1), (5,), transposed=True, **wide)
    yield case(make, (1, 8, 60, 90), 6, (3, 3), padding=(1,), out_dim_order=(0, 1, 2, 3), **wide)
    yield case(make, (1, 8, 3, 4), 6, (9, 9), padding=(4,), **wide)
    wide["order"] = CHANNELS_LAST_3D
    yield case(make, (2, 6, 4, 5, 6), 8, (2, 3, 3), (2, 1, 1), (1,), **wide)
    yield case(make, (2, 6, 4, 5, 6), 8, (2, 3, 3), (2, 1, 2), (1,), transposed=True, **wide)


def dtypes(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        yield case(make, (1, 4, 6, 5), 6, (3, 3), padding=(1,), groups=2, dtype=dtype)
        depthwise: dict[str, Any] = {"padding": (2,), "dilation": (2,), "groups": 3, "dtype": dtype}
        yield case(make, (2, 3, 9, 11), 6, (3, 2), (2, 1), **depthwise)
        yield case(make, (2, 3, 9, 11), 3, (3, 2), order=CHANNELS_LAST, **depthwise)
        yield case(make, (1, 3, 5, 6, 700), 3, (2, 3, 3), **depthwise)
        # In scratch memory that holds neither all channels nor all rows of one.
        wide: dict[str, Any] = {"groups": 150, "order": CHANNELS_LAST, "dtype": dtype}
        yield case(make, (1, 150, 40, 21), 150, (3, 3), padding=(1,), **wide)
        yield case(make, (2, 6, 9, 11), 8, (3, 2), transposed=True, groups=2, dtype=dtype)
    # Eager has these for integers, which wrap around.
    for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64):
        for groups in (1, 4):
            integers = {"groups": groups, "dtype": dtype}
            yield case(make, (2, 4, 9, 11), 8, (3, 2), (2, 1), (1,), bias=False, **integers)
    double = torch.float64
    yield case(make, (1, 4, 6, 5), 6, (3, 2), (2,), (1,), (2,), True, (1,), 2, dtype=double)
    yield case(make, (2, 40, 6, 5), 3, (3, 3), dtype=double, order=CHANNELS_LAST)
    yield case(make, (2, 4, 5, 6, 3), 3, (3, 3, 2), (2, 1, 1), dtype=double)
    yield case(make, (1, 3, 5, 6), 2, (3, 3), padding=(1,), dtype=torch.int64)


def convolution(make: Maker) -> Iterator[Sample]:
    for samples in (
        two_dimensional,
        depthwise,
        layouts,
        one_dimensional,
        three_dimensional,
        transposed,
        small_groups,
        dtypes,
    ):
        yield from samples(make)


def rounded_once(x: torch.Tensor, *args: Any) -> torch.Tensor:
    """Eager, by way of float32 for the 16-bit types: transposed, it rounds every product."""
    if x.dtype not in (torch.float16, torch.bfloat16):
        return torch.ops.aten.convolution(x, *args)  # type: ignore[no-any-return]
    wide = [a.float() if isinstance(a, torch.Tensor) else a for a in args]
    return torch.ops.aten.convolution(x.float(), *wide).to(x.dtype)  # type: ignore[no-any-return]


OPS = [OpCases("aten::convolution.out", convolution, rounded_once, tolerance=(1e-5, 3e-5))]


def error(message: str, *shapes: tuple[int, ...], **options: Any) -> ErrorCase:
    """A failing call: shapes of input, weight, bias and out."""
    defaults: dict[str, Any] = {
        "stride": [1, 1],
        "padding": [0, 0],
        "dilation": [1, 1],
        "transposed": False,
        "output_padding": [0, 0],
        "groups": 1,
    }

    def args(make: Maker) -> list[Any]:
        x, w, b, out = (torch.ones(s) for s in shapes)
        return [x, w, b, *(defaults | options).values(), out]

    return ErrorCase("aten::convolution.out", args, message)


X, W, B, Y = (1, 4, 5, 5), (6, 4, 3, 3), (6,), (1, 6, 3, 3)
ERRORS = [
    error("input has 4 channels", X, (6, 3, 3, 3), B, Y),
    error("input has 4 channels", X, (6, 2, 3, 3), B, Y, groups=4),
    error("both must have 3, 4 or 5 dimensions", X, (6, 4, 3), B, Y),
    error("groups is 0", X, W, B, Y, groups=0),
    error("bias has shape .* 6 output channels", X, W, (5,), Y),
    error("stride has an entry 0", X, W, B, Y, stride=[0, 1]),
    error("padding has an entry -1", X, W, B, Y, padding=[-1, 1]),
    error("dilation has 3 entries", X, W, B, Y, dilation=[1, 1, 1]),
    error("too small", X, (6, 4, 7, 7), B, Y),
    error(
        "output_padding has an entry 2", X, (4, 6, 3, 3), B, Y, transposed=True, output_padding=[2]
    ),
    error("the result has sizes", X, W, B, (1, 6, 2, 3)),
]
