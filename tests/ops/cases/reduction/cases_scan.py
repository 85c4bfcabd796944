"""Cases of running results along a dimension."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...harness import FLOATING, REAL, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)
NAN, INF = float("nan"), float("inf")


def shaped(make: Maker) -> Iterator[tuple[torch.Tensor, int]]:
    for dim in (0, 1, -1):
        yield make.tensor(3, 4, 5, low=-1.5, high=1.5), dim
        yield make.tensor(3, 4, 5, low=-1.5, high=1.5, order=(2, 0, 1)), dim
    yield make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), 1
    yield make.tensor(1300, low=0.9, high=1.1), 0
    yield make.tensor(3, 700, low=0.9, high=1.1), 0
    yield make.tensor(), 0
    yield make.tensor(0, 3), 1
    yield make.tensor(3, 0), 1


def product(make: Maker) -> Iterator[Sample]:
    for tensor, dim in shaped(make):
        yield Sample(tensor, dim)
    for dtype in (*REAL, torch.bool):
        yield Sample(make.tensor(4, 5, dtype=dtype, low=0.0, high=3.0), 1)
    yield Sample(make.tensor(4, 5, dtype=torch.int32), 0, dtype=torch.float32)
    yield Sample(make.tensor(4, 5), 0, dtype=torch.float64)
    yield Sample(make.tensor(20, special=True), 0)


def log_sum(make: Maker) -> Iterator[Sample]:
    for tensor, dim in shaped(make):
        yield Sample(tensor, dim)
    for dtype in FLOATING:
        yield Sample(make.tensor(4, 5, dtype=dtype), 1)
    yield Sample(torch.tensor([-INF, -INF, 1.0, INF, INF, NAN, 0.0]), 0)
    yield Sample(torch.tensor([500.0, -500.0, 1000.0]), 0)


def extreme(make: Maker) -> Iterator[Sample]:
    for tensor, dim in shaped(make):
        yield Sample(tensor, dim)
    for dtype in (*REAL, torch.bool):
        yield Sample(make.tensor(4, 30, dtype=dtype, low=0.0, high=3.0), 1)
    yield Sample(make.tensor(3, 20, special=True), 1)
    yield Sample(torch.tensor([1.0, NAN, 3.0, NAN, 0.0]), 0)


OPS = [
    OpCases("aten::cumprod.out", product),
    OpCases("aten::logcumsumexp.out", log_sum),
    OpCases("aten::cummax.out", extreme),
    OpCases("aten::cummin.out", extreme),
]


def f(*shape: int) -> torch.Tensor:
    """A float32 tensor of zeros."""
    return torch.zeros(shape)


ERRORS = [
    ErrorCase("aten::cumprod.out", lambda make: [f(3), 1, None, f(3)], "dim is 1, but"),
    ErrorCase("aten::cumprod.out", lambda make: [f(3), 0, None, f(3).cfloat()], "out is complex64"),
    ErrorCase("aten::logcumsumexp.out", lambda make: [f(3), 0, f(3).int()], "out is int32, but"),
    ErrorCase(
        "aten::cummax.out",
        lambda make: [f(3), 0, f(3).double(), f(3).long()],
        "values is float64, but must be float32",
    ),
    ErrorCase(
        "aten::cummin.out", lambda make: [f(3), 0, f(3), f(3).int()], "indices is int32, but"
    ),
]
