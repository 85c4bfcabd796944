"""Cases of the gradients of convolution and of two-dimensional pooling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..harness import FLOATING, ErrorCase, Maker, OpCases, Sample

aten = torch.ops.aten
CHANNELS_LAST = (0, 2, 3, 1)


# --- convolution --------------------------------------------------------------------------------


def convolution_case(
    make: Maker,
    shape: Sequence[int],
    out_channels: int,
    kernel: Sequence[int],
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    transposed: bool = False,
    output_padding: int = 0,
    groups: int = 1,
    dtype: torch.dtype = torch.float32,
    order: Sequence[int] | None = None,
) -> Sample:
    """One call on random values from -1 to 1."""

    def tensor(*sizes: int, order: Sequence[int] | None = None) -> torch.Tensor:
        return make.tensor(*sizes, low=-1.0, high=1.0, dtype=dtype, order=order)

    sizes = (shape[1], out_channels) if transposed else (out_channels, shape[1])
    x = tensor(*shape, order=order)
    weight = tensor(sizes[0], sizes[1] // groups, *kernel)
    lists = [[v] * len(kernel) for v in (stride, padding, dilation)]
    rest = (transposed, [output_padding] * len(kernel), groups)
    out = aten.convolution(x.float(), weight.float(), None, *lists, *rest)
    grad = tensor(*out.shape, order=order)
    mask = [True, True, True]
    return Sample(grad, x, weight, [out_channels], *lists, *rest, mask)


def convolution(make: Maker) -> Iterator[Sample]:
    for transposed in (False, True):
        for options in (
            {},
            {"padding": 1},
            {"stride": 2, "padding": 1},
            {"stride": 3, "padding": 2, "dilation": 2},
        ):
            yield convolution_case(make, (2, 6, 11, 9), 4, (3, 3), transposed=transposed, **options)
            yield convolution_case(
                make, (2, 6, 11, 9), 4, (3, 2), transposed=transposed, groups=2, **options
            )
            yield convolution_case(
                make, (2, 6, 11, 9), 6, (3, 3), transposed=transposed, groups=6, **options
            )
            yield convolution_case(
                make,
                (2, 6, 11, 9),
                4,
                (3, 3),
                transposed=transposed,
                order=CHANNELS_LAST,
                **options,
            )
        yield convolution_case(make, (2, 4, 30), 3, (5,), 2, 1, transposed=transposed)
        yield convolution_case(make, (1, 2, 5, 6, 4), 3, (3, 2, 3), 1, 1, transposed=transposed)
        yield convolution_case(make, (2, 20, 7, 8), 33, (1, 1), transposed=transposed)
        for dtype in FLOATING:
            yield convolution_case(
                make, (2, 4, 6, 5), 6, (3, 3), 2, 1, transposed=transposed, groups=2, dtype=dtype
            )
    yield convolution_case(make, (1, 4, 6, 5), 6, (3, 3), 2, 1, transposed=True, output_padding=1)
    # Channels side by side in small groups: with little scratch, copies of some groups at a time.
    for dtype in (torch.float32, torch.bfloat16):
        for groups in (4, 16):
            yield convolution_case(
                make, (2, 16, 12, 10), 16, (3, 3), groups=groups, dtype=dtype, order=CHANNELS_LAST
            )
    yield from channels_side_by_side(make)
    yield convolution_case(make, (0, 4, 6, 5), 6, (3, 3))


def channels_side_by_side(make: Maker) -> Iterator[Sample]:
    """More or fewer channels than a vector or a block; boxes of pixels in every dimension."""
    for shape, outs, groups in [
        ((2, 6, 9, 7), 4, 2),
        ((1, 21, 6, 5), 21, 21),
        ((1, 36, 5, 9), 72, 1),
        ((1, 150, 5, 6), 150, 150),
        ((1, 2, 70, 300), 3, 1),
    ]:
        for transposed in (False, True):
            for options in ({"padding": 1}, {"stride": 3, "padding": 2, "dilation": 2}):
                yield convolution_case(
                    make,
                    shape,
                    outs,
                    (3, 5),
                    transposed=transposed,
                    groups=groups,
                    order=CHANNELS_LAST,
                    **options,
                )
        for dtype in (torch.float16, torch.float64):
            yield convolution_case(
                make, shape, outs, (1, 1), 2, groups=groups, dtype=dtype, order=CHANNELS_LAST
            )
    for groups in (1, 2, 4):
        yield convolution_case(
            make, (2, 4, 5, 6, 4), 8, (3, 2, 3), 1, 1, groups=groups, order=(0, 2, 3, 4, 1)
        )


def in_double(x: torch.Tensor, *args: Any) -> list[torch.Tensor]:
    """Eager in double: in the 16-bit types it rounds in many places."""
    wide = [a.double() if isinstance(a, torch.Tensor) else a for a in args]
    return [g.to(x.dtype) for g in aten.convolution_backward(x.double(), *wide)]


# --- pooling ------------------------------------------------------------------------------------

# (height, width), kernel_size, stride, padding, dilation, ceil_mode
WINDOWS: list[tuple[tuple[int, int], Any, Any, Any, Any, bool]] = [
    ((8, 8), [2, 2], [], [0, 0], [1, 1], False),
    ((9, 21), [3, 3], [2, 1], [1, 1], [1, 1], False),
    ((10, 41), [3, 3], [3, 4], [1, 1], [1, 1], True),
    ((12, 23), [3, 5], [2, 3], [1, 2], [3, 2], True),
    ((4, 1300), [2, 3], [2, 1], [1, 1], [1, 1], False),
]


def pairs(
    make: Maker, size: tuple[int, int], dtype: torch.dtype = torch.float32
) -> Iterator[torch.Tensor]:
    """Inputs of both ranks and orders of dimensions."""
    yield make.tensor(3, *size, dtype=dtype)
    yield make.tensor(2, 3, *size, dtype=dtype)
    yield make.tensor(2, 3, *size, dtype=dtype, order=CHANNELS_LAST)


def max_pool(make: Maker) -> Iterator[Sample]:
    for size, *window in WINDOWS:
        for x in pairs(make, size):
            out, indices = aten.max_pool2d_with_indices(x, *window)
            grad = torch.empty_like(out).copy_(make.tensor(*out.shape))
            yield Sample(grad, x, *window, indices)
            yield Sample(grad.contiguous(), x, *window, indices)
    for dtype in FLOATING:
        x = make.tensor(1, 2, 9, 21, dtype=dtype)
        out, indices = aten.max_pool2d_with_indices(x, [3, 3], [1, 1])
        grad = make.tensor(*out.shape, dtype=dtype)
        yield Sample(grad, x, [3, 3], [1, 1], [0, 0], [1, 1], False, indices)
    for dtype in FLOATING:  # planes that are greater than what is summed in at a time
        x = make.tensor(1, 2, 70, 90, dtype=dtype)
        out, indices = aten.max_pool2d_with_indices(x, [3, 3], [2, 2])
        yield Sample(torch.ones_like(out), x, [3, 3], [2, 2], [0, 0], [1, 1], False, indices)
    x, somewhere = make.tensor(2, 3, 6, 6), make.integers(2, 3, 3, 3, low=0, high=36)
    yield Sample(make.tensor(2, 3, 3, 3), x, [2, 2], [], [0, 0], [1, 1], False, somewhere)
    empty = torch.zeros(0, 2, 4, 4)
    args = ([1, 1], [1, 1], [0, 0], [1, 1], False)
    yield Sample(empty, empty, *args, empty.long())


def avg_pool(make: Maker) -> Iterator[Sample]:
    for size, kernel, stride, padding, dilation, ceil in WINDOWS:
        if dilation != [1, 1]:
            continue
        for x in pairs(make, size):
            for count, divisor in ((True, None), (False, None), (True, 3)):
                args = (kernel, stride, padding, ceil, count, divisor)
                grad = torch.empty_like(aten.avg_pool2d(x, *args))
                yield Sample(grad.copy_(make.tensor(*grad.shape)), x, *args)
    for dtype in FLOATING:
        x = make.tensor(1, 2, 9, 21, dtype=dtype)
        grad = make.tensor(1, 2, 7, 19, dtype=dtype)
        yield Sample(grad, x, [3, 3], [1, 1], [0, 0], False, True, None)


def adaptive_avg_pool(make: Maker) -> Iterator[Sample]:
    for size, out in (((8, 6), (4, 3)), ((7, 13), (3, 5)), ((5, 700), (1, 1)), ((3, 4), (5, 9))):
        for x in pairs(make, size):
            grad = torch.empty_like(aten._adaptive_avg_pool2d(x, out))
            yield Sample(grad.copy_(make.tensor(*grad.shape)), x)
    for dtype in FLOATING:
        yield Sample(make.tensor(1, 2, 3, 5, dtype=dtype), make.tensor(1, 2, 9, 21, dtype=dtype))


def in_float(op: Any) -> Callable[..., torch.Tensor]:
    """Eager by way of float32 for the 16-bit types, in which it rounds each sum."""

    def reference(grad: torch.Tensor, *args: Any) -> torch.Tensor:
        if grad.dtype not in (torch.float16, torch.bfloat16):
            return op(grad, *args)  # type: ignore[no-any-return]
        floats = [
            a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args
        ]
        return op(grad.float(), *floats).to(grad.dtype)  # type: ignore[no-any-return]

    return reference


CONV = "aten::convolution_backward.out"
MAX = "aten::max_pool2d_with_indices_backward.grad_input"
AVG = "aten::avg_pool2d_backward.grad_input"
ADAPTIVE = "aten::_adaptive_avg_pool2d_backward.out"
OPS = [
    OpCases(ADAPTIVE, adaptive_avg_pool, in_float(aten._adaptive_avg_pool2d_backward)),
    OpCases(AVG, avg_pool, in_float(aten.avg_pool2d_backward), tolerance=(2e-6, 1e-5)),
    OpCases(CONV, convolution, in_double, tolerance=(1e-5, 1e-4)),
    OpCases(MAX, max_pool, in_float(aten.max_pool2d_with_indices_backward), tolerance=(2e-6, 1e-5)),
]


def conv_error(message: str, grad: tuple[int, ...], mask: list[bool], groups: int = 1) -> ErrorCase:
    """A call for an input of shape [1, 4, 5, 5] and weights [6, 4, 3, 3]."""

    def args(make: Maker) -> list[Any]:
        x, w = make.tensor(1, 4, 5, 5), make.tensor(6, 4, 3, 3)
        ones = [1, 1]
        rest = ([6], ones, [0, 0], ones, False, [0, 0], groups, mask)
        return [make.tensor(*grad), x, w, *rest, x.clone(), w.clone(), torch.zeros(6)]

    return ErrorCase(CONV, args, message)


def max_error(message: str, index: int, grad: tuple[int, ...] = (1, 2, 2)) -> ErrorCase:
    def args(make: Maker) -> list[Any]:
        indices = torch.tensor([[[0, 2], [8, index]]])
        window = ([2, 2], [2, 2], [0, 0], [1, 1], False)
        return [make.tensor(*grad), make.tensor(1, 4, 4), *window, indices, torch.zeros(1, 4, 4)]

    return ErrorCase(MAX, args, message)


ERRORS = [
    conv_error(
        r"grad_output has shape .* but the convolution gives \(1, 6, 3, 3\)",
        (1, 6, 3, 4),
        [True] * 3,
    ),
    conv_error("output_mask has 2 entries, but must have 3", (1, 6, 3, 3), [True] * 2),
    conv_error("input has 4 channels", (1, 6, 3, 3), [True] * 3, groups=2),
    max_error("indices has 16 at row 1, column 1 of the outputs", 16),
    max_error("indices has -1 at row 1, column 1", -1),
    max_error("indices has 9223372036854775807 at .* must be from 0 to 15", 2**63 - 1),
    max_error(
        r"grad_output has shape \(1, 2, 1\), but the pooling gives \(1, 2, 2\)", 10, (1, 2, 1)
    ),
    ErrorCase(
        AVG,
        lambda make: [
            make.tensor(1, 2, 2),
            make.tensor(1, 4, 4),
            *([2, 2], [2, 2], [0, 0], False, True, 0),
            torch.zeros(1, 4, 4),
        ],
        "divisor_override is 0",
    ),
    ErrorCase(
        ADAPTIVE,
        lambda make: [make.tensor(2, 2, 2), make.tensor(1, 4, 4), torch.zeros(1, 4, 4)],
        r"grad_output has shape \(2, 2, 2\), but the pooling gives \(1, 2, 2\)",
    ),
    ErrorCase(
        ADAPTIVE,
        lambda make: [make.tensor(2), make.tensor(1, 4, 4), torch.zeros(1, 4, 4)],
        r"grad_output has shape \(2,\), but must have self's rank",
    ),
]
