"""Cases of different elements and of counting."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...harness import INTEGRAL, REAL, ErrorCase, Maker, OpCases, Sample

EVERY = (*REAL, torch.bool)
NAN = float("nan")
ODD = torch.tensor([NAN, 1.0, NAN, 0.0, -0.0, 1.0, float("inf"), -0.0, 0.0, -float("inf")])


def whole(x: torch.Tensor) -> torch.Tensor:
    return x.round() if x.dtype.is_floating_point else x


def tensors(make: Maker) -> Iterator[torch.Tensor]:
    for dtype in EVERY:
        yield whole(make.tensor(4, 15, dtype=dtype, low=0, high=9))
    yield make.integers(3000, low=0, high=700)
    yield make.integers(3, 4, 5, low=-(2**40), high=2**40)
    yield make.tensor(5, 6, order=(1, 0)).round()
    yield from (torch.zeros(0), torch.zeros(0, 3), torch.tensor(3.0))


def unique2(make: Maker) -> Iterator[Sample]:
    with_nans = make.tensor(1000).round(decimals=1)
    with_nans[::3] = NAN
    yield Sample(with_nans)
    yield Sample(with_nans, True, False, True)  # which of many NaNs eager puts first is open
    for x in (*tensors(make), ODD, -ODD):
        yield Sample(x, True, True, True)
        yield Sample(x)
    yield Sample(make.tensor(50).round(), False, True, False)


def unique_consecutive(make: Maker) -> Iterator[Sample]:
    for x in (*tensors(make), ODD):
        yield Sample(x, True, True)
        yield Sample(x)
    for dtype in EVERY:
        x = make.tensor(2, 3, 2, dtype=dtype).repeat_interleave(2, 1)
        for dim in (0, 1, -1):
            yield Sample(x, dim=dim)
    yield Sample(make.tensor(9, 2, order=(1, 0)).gt(0), True, True, 0)
    yield Sample(torch.zeros(0, 3), True, True, 0)


def unique_dim(make: Maker) -> Iterator[Sample]:
    for dtype in EVERY:
        x = whole(make.tensor(9, 3, 2, dtype=dtype, low=0, high=2))
        for dim in (0, 1, -1):
            yield Sample(x, dim, True, True, True)
    yield Sample(make.integers(300, 3, low=0, high=3), 0, False)
    yield Sample(make.tensor(20, 2, order=(1, 0)).round(), 0)
    yield Sample(torch.zeros(0, 3), 0, True, True, True)


def bincount(make: Maker) -> Iterator[Sample]:
    for dtype in INTEGRAL:
        x = make.integers(40, low=0, high=9, dtype=dtype)
        yield Sample(x)
        yield Sample(x, None, 20)
        for weights in EVERY:
            yield Sample(x, make.tensor(40, dtype=weights, low=0, high=3), 3)
    yield Sample(torch.zeros(0, dtype=torch.int64), None, 4)
    yield Sample(torch.zeros(0, dtype=torch.int64))


OPS = [
    OpCases("aten::_unique2.out", unique2),
    OpCases("aten::bincount.out", bincount),
    OpCases("aten::unique_consecutive.out", unique_consecutive),
    OpCases("aten::unique_dim.out", unique_dim),
]


def three(x: torch.Tensor) -> list[torch.Tensor]:
    return [x.clone(), torch.zeros(4).long(), torch.zeros(4).long()]


ERRORS = [
    ErrorCase(
        "aten::unique_dim.out",
        lambda make: [torch.zeros(3, 0), 0, True, True, True, *three(torch.zeros(3, 0))],
        "its slices along dimension 0 have no elements",
    ),
    ErrorCase(
        "aten::unique_dim.out",
        lambda make: [torch.zeros(3, 2), 2, True, True, True, *three(torch.zeros(3, 2))],
        "dim is 2",
    ),
    ErrorCase(
        "aten::_unique2.out",
        lambda make: [torch.zeros(4), True, True, True, *three(torch.zeros(4, dtype=torch.int8))],
        "self is float32",
    ),
    ErrorCase(
        "aten::bincount.out",
        lambda make: [torch.tensor([1, -1]), None, 0, torch.zeros(4).long()],
        "self holds -1 to 1 and minlength is 0",
    ),
    ErrorCase(
        "aten::bincount.out",
        lambda make: [torch.tensor([2**40]), None, 0, torch.zeros(4).long()],
        "self holds 0 to 1099511627776",
    ),
    ErrorCase(
        "aten::bincount.out",
        lambda make: [torch.tensor([1, 2]), torch.ones(3), 0, torch.zeros(4)],
        "self has 2 elements and weights 3",
    ),
]
