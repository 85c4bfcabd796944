"""Cases of the scatters that reduce, and of what replaces a part of a tensor."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...harness import FLOATING, REAL, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)
TYPES = (*REAL, torch.bool)
NAN = float("nan")


def scattered(make: Maker) -> Iterator[tuple[torch.Tensor, int, torch.Tensor, torch.Tensor]]:
    """self, dim, index with places that come twice, src."""
    index = make.integers(5, 4, low=0, high=3)
    yield make.tensor(3, 4), 0, index, make.tensor(5, 4)
    yield make.tensor(6, 3, order=(1, 0)), 1, index, make.tensor(7, 4, order=(1, 0))
    yield make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), -3, *_deep(make)
    yield make.tensor(), 0, torch.tensor(0), make.tensor()
    yield make.tensor(3, 4), 0, torch.zeros(0, 4, dtype=torch.int64), make.tensor(5, 4)
    for dtype in TYPES:
        src = make.tensor(5, 4, dtype=dtype, low=0.0, high=3.0)
        yield make.tensor(3, 4, dtype=dtype, low=0.0, high=3.0), 0, index, src
    src = make.tensor(5, 4, special=True)
    yield make.tensor(3, 4), 0, index, src


def _deep(make: Maker) -> tuple[torch.Tensor, torch.Tensor]:
    return make.integers(2, 6, 3, 5, low=0, high=3), make.tensor(2, 6, 4, 5)


def by_fold(make: Maker) -> Iterator[Sample]:
    for self, dim, index, src in scattered(make):
        if self.dtype in FLOATING[2:]:  # eager rounds a half after every step; so does the kernel
            continue
        for reduce in ("add", "multiply"):
            yield Sample(self, dim, index, src, reduce=reduce)


def value_by_fold(make: Maker) -> Iterator[Sample]:
    for self, dim, index, _ in scattered(make):
        for reduce in ("add", "multiply"):
            if self.dtype != torch.bool:
                yield Sample(self, dim, index, 2, reduce=reduce)


def by_reduction(make: Maker) -> Iterator[Sample]:
    for self, dim, index, src in scattered(make):
        for reduce in ("sum", "prod", "amax", "amin"):
            for include_self in (True, False):
                yield Sample(self, dim, index, src, reduce, include_self=include_self)
    for dtype in (torch.float16, torch.bfloat16):  # rounded once, not at every element
        many = torch.full((4000, 2), 0.1, dtype=dtype)
        yield Sample(
            torch.zeros(1, 2, dtype=dtype), 0, places(0).expand(4000, 2).contiguous(), many, "sum",
            include_self=True,
        )  # fmt: skip


def masked_scatter(make: Maker) -> Iterator[Sample]:
    for dtype in TYPES:
        mask = make.tensor(4, 5, dtype=torch.bool)
        self, source = (
            make.tensor(4, 5, dtype=dtype, low=0.0),
            make.tensor(20, dtype=dtype, low=0.0),
        )
        yield Sample(self, mask, source)
    mask = make.tensor(2, 3, 4, 5, dtype=torch.bool)
    whole = make.tensor(2, 3, 4, 5, order=CHANNELS_LAST)
    yield Sample(whole, mask, make.tensor(2, 60, order=(1, 0)))
    yield Sample(make.tensor(4, 5), make.tensor(5, dtype=torch.bool), make.tensor(30))
    yield Sample(make.tensor(5), make.tensor(4, 1, dtype=torch.bool), make.tensor(30))
    yield Sample(make.tensor(3), torch.zeros(3, dtype=torch.bool), make.tensor(0))
    yield Sample(make.tensor(0, 3), torch.zeros(3, dtype=torch.bool), make.tensor(2))


def diagonal_scatter(make: Maker) -> Iterator[Sample]:
    for offset in (-2, 0, 1):
        self = make.tensor(4, 5)
        yield Sample(self, torch.ones_like(torch.diagonal(self, offset)), offset)
        deep = make.tensor(2, 3, 4, 5, order=CHANNELS_LAST)
        src = make.tensor(*torch.diagonal(deep, offset, 1, -1).shape)
        yield Sample(deep, src, offset, 1, -1)
    yield Sample(make.tensor(4, 5), torch.zeros(0), 9)
    yield Sample(make.tensor(3, 3, dtype=torch.int8), torch.ones(3, dtype=torch.int8))


OPS = [
    OpCases("aten::scatter.reduce_out", by_fold),
    OpCases("aten::scatter.value_reduce_out", value_by_fold),
    OpCases("aten::scatter_reduce.two_out", by_reduction),
    OpCases("aten::masked_scatter.out", masked_scatter),
    OpCases("aten::diagonal_scatter.out", diagonal_scatter),
]


def f(*shape: int) -> torch.Tensor:
    """A float32 tensor of zeros."""
    return torch.zeros(shape)


def places(*values: int) -> torch.Tensor:
    """An int64 tensor."""
    return torch.tensor(values)


ERRORS = [
    ErrorCase(
        "aten::scatter.reduce_out",
        lambda make: [f(3), 0, places(0), f(1), "sum", f(3)],
        "reduce is 'sum', but must be add or multiply",
    ),
    ErrorCase(
        "aten::scatter.value_reduce_out",
        lambda make: [f(3), 0, places(3), 1, "add", f(3)],
        "index 3 is out of bounds for dimension 0",
    ),
    ErrorCase(
        "aten::scatter_reduce.two_out",
        lambda make: [f(3), 0, places(0), f(1), "mean", True, f(3)],
        "reduce is 'mean', but must be sum, prod, amax or amin",
    ),
    ErrorCase(
        "aten::scatter_reduce.two_out",
        lambda make: [f(3), 0, places(-1), f(1), "sum", False, f(3)],
        "index -1 is out of bounds",
    ),
    ErrorCase(
        "aten::scatter_reduce.two_out",
        lambda make: [f(3), 0, places(0), f(1).int(), "sum", True, f(3)],
        "src is int32, but out is float32",
    ),
    ErrorCase(
        "aten::masked_scatter.out",
        lambda make: [f(3), torch.ones(3, dtype=torch.bool), f(2), f(3)],
        "mask is true 3 times, but source has 2 elements",
    ),
    ErrorCase(
        "aten::masked_scatter.out",
        lambda make: [f(3), f(3), f(3), f(3)],
        "mask is float32, but must be bool",
    ),
    ErrorCase(
        "aten::diagonal_scatter.out",
        lambda make: [f(3, 3), f(2), 0, 0, 1, f(3, 3)],
        r"src has shape \(2,?\), but the diagonal has \(3,?\)",
    ),
    ErrorCase(
        "aten::diagonal_scatter.out",
        lambda make: [f(3, 3), f(3), 0, 1, -1, f(3, 3)],
        "dim1 and dim2 are both 1",
    ),
]
