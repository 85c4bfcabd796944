"""Cases of the operators that create and copy tensors."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...harness import REAL, ErrorCase, Maker, OpCases, Sample

ALL = (*REAL, torch.bool)
SHAPES = ([], [0], [3], [2, 0, 3], [2, 3, 4], [1, 700])
CHANNELS_LAST = (0, 2, 3, 1)


def full(make: Maker) -> Iterator[Sample]:
    for dtype in ALL:
        for shape in SHAPES:
            yield Sample(shape, True if dtype == torch.bool else 3, dtype=dtype)
    yield Sample([4], -2.5, dtype=torch.float16)
    yield Sample([4], float("-inf"), dtype=torch.float32)
    yield Sample([2, 3, 4, 5], 1.5, dtype=torch.float32, out_dim_order=CHANNELS_LAST)


def full_like(make: Maker) -> Iterator[Sample]:
    for dtype in ALL:
        yield Sample(make.tensor(20, 31, dtype=dtype), 1)
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), -1.5)
    yield Sample(make.tensor(0, 3), 1)


def sizes(make: Maker) -> Iterator[Sample]:
    for dtype in ALL:
        for shape in SHAPES:
            yield Sample(shape, dtype=dtype)


def arange(make: Maker) -> Iterator[Sample]:
    for dtype in (torch.int64, torch.int32, torch.float32, torch.float64, torch.float16):
        for end in (0, 1, 600):
            yield Sample(end, dtype=dtype)
    yield Sample(7.5, dtype=torch.float32)


def arange_start(make: Maker) -> Iterator[Sample]:
    for dtype in (torch.int64, torch.int32, torch.float32, torch.float64):
        for start, end, step in ((0, 9, 1), (5, -6, -2), (3, 3, 1), (-700, 700, 3)):
            yield Sample(start, end, step, dtype=dtype)
    yield Sample(0.5, 9.0, 0.3, dtype=torch.float32)
    yield Sample(1, 0, -0.125, dtype=torch.float64)
    yield Sample(2**60, 2**60 + 5, 1, dtype=torch.int64)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.uint8):  # without the fractions
        yield Sample(0.9, 8.1, 1.9, dtype=dtype)
        yield Sample(1.1, 9.0, 2, dtype=dtype)
    for dtype in (torch.int64, torch.int32):
        yield Sample(0.1, -7.9, -4.0, dtype=dtype)


def scalar_tensor(make: Maker) -> Iterator[Sample]:
    for dtype in ALL:
        yield Sample(True if dtype == torch.bool else 3, dtype=dtype)
    yield Sample(2.75, dtype=torch.float32)


def fill_scalar(make: Maker) -> Iterator[Sample]:
    for dtype in ALL:
        yield Sample(make.tensor(20, 31, dtype=dtype), 1)
    yield Sample(make.tensor(0), 1)


def fill_tensor(make: Maker) -> Iterator[Sample]:
    for dtype in ALL:
        yield Sample(make.tensor(20, 31, dtype=dtype), make.tensor(dtype=dtype))
    yield Sample(make.tensor(5), torch.tensor(3))


def copies(make: Maker) -> Iterator[Sample]:
    """Every dtype, and every way from one order of dimensions to another."""
    for dtype in (*ALL, torch.complex64, torch.uint16):
        values = make.tensor(20, 31, low=0, high=100)
        yield Sample(values > 50 if dtype == torch.bool else values.to(dtype))
    orders = [(0, 1, 2, 3), CHANNELS_LAST, (3, 2, 1, 0), (1, 0, 3, 2)]
    for source in orders:
        for target in orders:
            yield Sample(make.tensor(2, 3, 4, 65, order=source), out_dim_order=target)
    for shape in ((), (0,), (3, 0, 2), (1,), (600,)):
        yield Sample(make.tensor(*shape))


def conversions(make: Maker) -> Iterator[Sample]:
    yield from copies(make)
    for source in ALL:
        for target in ALL:
            low = 0 if torch.uint8 in (source, target) else -100
            yield Sample(make.tensor(20, 31, low=low, high=100, dtype=source), dtype=target)
    odd = make.tensor(40, special=True)
    for target in (torch.float16, torch.bfloat16, torch.float64, torch.bool):
        yield Sample(odd, dtype=target)
    # Every float16 there is, and floats on both sides of each of their halves.
    halves = torch.arange(-32768, 32768, dtype=torch.int16).view(torch.float16)
    yield Sample(halves, dtype=torch.float32)
    between = halves.float()[halves.isfinite()] * (1 + 2.0**-11)
    for target in (torch.float16, torch.bfloat16):
        yield Sample(between, dtype=target)
        yield Sample(make.tensor(3000, low=-1e-7, high=1e-7), dtype=target)
        yield Sample(make.tensor(3000, low=-70000, high=70000), dtype=target)


def to_copy(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    return tensor.to(dtype=dtype, copy=True)


def broadcast_copies(make: Maker) -> Iterator[Sample]:
    for dtype in (torch.float32, torch.int64, torch.float16):
        yield Sample(make.tensor(20, 31, dtype=dtype), make.tensor(20, 31))
        yield Sample(make.tensor(20, 31, dtype=dtype), make.tensor(31, dtype=torch.int32))
    yield Sample(make.tensor(2, 3, 4, 5), make.tensor(3, 1, 1))
    yield Sample(make.tensor(2, 3, 4, 5), make.tensor(2, 3, 4, 5, order=CHANNELS_LAST))
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), make.tensor())
    yield Sample(make.tensor(0, 3), make.tensor(3))


def empty_dim_order(size: list[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(size, dtype=dtype)


OPS = [
    OpCases("aten::full.out", full, reference=torch.full),
    OpCases("aten::full_like.out", full_like),
    OpCases("aten::zeros.out", sizes, reference=torch.zeros),
    OpCases("aten::ones.out", sizes, reference=torch.ones),
    OpCases("aten::empty.out", sizes, reference=torch.empty, values=False),
    OpCases("dim_order_ops::_empty_dim_order.out", sizes, reference=empty_dim_order, values=False),
    OpCases("aten::arange.out", arange, reference=torch.arange),
    OpCases("aten::arange.start_out", arange_start, reference=torch.arange),
    OpCases("aten::scalar_tensor.out", scalar_tensor, reference=torch.scalar_tensor),
    OpCases("aten::fill.Scalar_out", fill_scalar),
    OpCases("aten::fill.Tensor_out", fill_tensor),
    OpCases("aten::clone.out", copies),
    OpCases("aten::detach_copy.out", copies),
    OpCases("aten::alias_copy.out", copies),
    OpCases("aten::lift_fresh_copy.out", copies),
    OpCases("aten::_to_copy.out", conversions, reference=to_copy),
    OpCases("dim_order_ops::_to_dim_order_copy.out", conversions, reference=to_copy),
    OpCases("dim_order_ops::_clone_dim_order.out", copies, reference=torch.clone),
    OpCases("aten::copy.out", broadcast_copies),
    OpCases("aten::copy_", broadcast_copies, reference=torch.Tensor.copy_),
]

ERRORS = [
    ErrorCase("aten::full.out", lambda make: [[2, -1], 0, make.tensor(2, 2)], r"size\[1\] is -1"),
    ErrorCase("aten::full.out", lambda make: [[2] * 17, 0, make.tensor(2)], "17 dimensions"),
    ErrorCase("aten::full.out", lambda make: [[2, 2], 0, make.tensor(2)], r"\(2, 2\)"),
    ErrorCase(
        "aten::full.out",
        lambda make: [[2], 0, make.tensor(2).to(torch.complex128)],
        "out is complex128",
    ),
    ErrorCase("aten::arange.start_out", lambda make: [0, 5, 0, make.tensor(5)], "step"),
    ErrorCase("aten::arange.start_out", lambda make: [0, 5, -1, make.tensor(5)], "step"),
    ErrorCase("aten::arange.out", lambda make: [1e30, make.tensor(5)], "too many"),
    ErrorCase("aten::arange.out", lambda make: [float("nan"), make.tensor(5)], "step"),
    ErrorCase("aten::arange.out", lambda make: [2**40, make.tensor(5)], "too many"),
    ErrorCase(
        "aten::copy_",
        lambda make: [make.tensor(2, 3), make.tensor(4), False],
        "cannot be broadcast",
    ),
    ErrorCase(
        "aten::copy_",
        lambda make: [make.tensor(3), make.tensor(2, 3), False],
        "does not broadcast",
    ),
    ErrorCase(
        "aten::clone.out",
        lambda make: [make.tensor(3).to(torch.complex64), None, make.tensor(3)],
        "complex64 cannot be converted",
    ),
    ErrorCase(
        "aten::fill.Tensor_out",
        lambda make: [make.tensor(3), make.tensor(2), make.tensor(3)],
        "value has 2 elements",
    ),
]
