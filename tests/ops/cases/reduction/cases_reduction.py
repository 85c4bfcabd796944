"""Cases of the reductions, running sums, topk and tril."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch

from ...harness import FLOATING, INTEGRAL, REAL, ErrorCase, Maker, OpCases, Sample

ALL = (*REAL, torch.bool)
CHANNELS_LAST = (0, 2, 3, 1)
# Rows and columns longer and shorter than a chunk, middle dimensions, orders of dimensions.
LAYOUTS: list[tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, ...] | None]] = [
    ((2, 3, 4, 5), None, None),
    ((2, 3, 4, 5), CHANNELS_LAST, None),
    ((2, 3, 4, 5), (3, 1, 0, 2), None),
    ((3, 700), None, None),
    ((700, 3), None, None),
    ((2, 33, 600), None, None),
]


def tensors(make: Maker, dtypes: tuple[torch.dtype, ...]) -> Iterator[torch.Tensor]:
    for shape, order, _ in LAYOUTS:
        yield make.tensor(*shape, order=order)
    for dtype in dtypes:
        yield make.tensor(20, 31, dtype=dtype, low=0 if dtype == torch.uint8 else -5)


def dim_sets(rank: int) -> list[list[int]]:
    sets = [[d] for d in range(rank)] + [[-1, 0]] if rank > 1 else [[0]]
    if rank == 4:
        sets += [[2, 3], [0, 2, 3], [1, 3], [0, 1, 2, 3]]
    return sets


def over_dims(
    dtypes: tuple[torch.dtype, ...],
    all_dims: tuple[Any, ...] = (),
    zero_size: bool = True,
    special: bool = True,
    **kwargs: Any,
) -> Any:
    """Sets of dimensions, kept and not; ``all_dims``: what else stands for all of them."""

    def samples(make: Maker) -> Iterator[Sample]:
        for tensor in tensors(make, dtypes):
            for dims, keepdim in product((*dim_sets(tensor.dim()), *all_dims), (False, True)):
                yield Sample(tensor, dims, keepdim=keepdim, **kwargs)
        yield Sample(make.tensor(), [0], keepdim=False, **kwargs)
        yield Sample(make.tensor(0, 3), [1], keepdim=False, **kwargs)
        if zero_size:
            yield Sample(make.tensor(0, 3), [0], keepdim=True, **kwargs)
        if special:
            yield Sample(make.tensor(9, 1, 3, special=True), [0], keepdim=False, **kwargs)

    return samples


def typed_sums(make: Maker) -> Iterator[Sample]:
    yield from over_dims(ALL, ([], None))(make)
    for source in ALL:
        for target in (torch.float32, torch.float64, torch.int64, torch.int32, torch.float16):
            yield Sample(make.tensor(20, 31, dtype=source, low=0), [1], dtype=target)
    yield Sample(make.tensor(3, 50000, low=0.0, high=1.0), [1])
    yield Sample(make.tensor(50000, 3, low=0.0, high=1.0), [0])


def typed_means(make: Maker) -> Iterator[Sample]:
    yield from over_dims(FLOATING, ([], None))(make)
    for source in ALL:
        for target in (torch.float32, torch.float64, torch.float16):
            yield Sample(make.tensor(20, 31, dtype=source, low=0), [1], dtype=target)


def over_one(dtypes: tuple[torch.dtype, ...], zero_size: bool = True) -> Any:
    """One dimension as an int."""

    def samples(make: Maker) -> Iterator[Sample]:
        for sample in over_dims(dtypes, zero_size=zero_size)(make):
            tensor, dims = sample.args
            if len(dims) == 1:
                yield Sample(tensor, dims[0], **sample.kwargs)

    return samples


def over_all(dtypes: tuple[torch.dtype, ...], zero_size: bool = True) -> Any:
    """Everything at once."""

    def samples(make: Maker) -> Iterator[Sample]:
        for tensor in tensors(make, dtypes):
            yield Sample(tensor)
        yield Sample(make.tensor())
        yield Sample(make.tensor(100, special=True))
        if zero_size:
            yield Sample(make.tensor(0, 3))

    return samples


def products(make: Maker) -> Iterator[Sample]:
    for shape, order, _ in LAYOUTS[:3]:
        for dim, keepdim in product(range(4), (False, True)):
            yield Sample(make.tensor(*shape, order=order), dim, keepdim)
    for dtype in ALL:
        yield Sample(make.tensor(4, 6, dtype=dtype, low=0), -1)
    yield Sample(make.tensor(0, 3), 0)


def products_all(make: Maker) -> Iterator[Sample]:
    for dtype in ALL:
        yield Sample(make.tensor(3, 4, dtype=dtype, low=0))
    yield Sample(make.tensor(0, 3))
    yield Sample(make.tensor(3, 4, dtype=torch.int32, low=0), dtype=torch.float32)


def sparse(samples: Any) -> Any:
    """Mostly zeros, so that any() is sometimes false."""

    def thinned(make: Maker) -> Iterator[Sample]:
        for sample in samples(make):
            tensor = sample.args[0]
            keep = make.integers(*tensor.shape, low=0, high=30) == 0
            zero = torch.zeros((), dtype=tensor.dtype)
            yield Sample(torch.where(keep, tensor, zero), *sample.args[1:], **sample.kwargs)

    return thinned


def variances(make: Maker) -> Iterator[Sample]:
    for unbiased in (True, False):
        yield from over_dims(FLOATING, ([], None), unbiased=unbiased)(make)


def corrected(make: Maker) -> Iterator[Sample]:
    for correction in (None, 0, 1, 2.5):
        # Eager's running mean makes NaN of an infinity among numbers.
        yield from over_dims(FLOATING, ([], None), special=False, correction=correction)(make)


def args(make: Maker) -> Iterator[Sample]:
    yield from over_one(REAL, zero_size=False)(make)
    for tensor in tensors(make, REAL):
        yield Sample(tensor, None, False)
        yield Sample(tensor, None, True)
    yield Sample(make.tensor(9, 3, special=True), 0)
    nan = make.tensor(1300)
    nan[700] = nan[900] = float("nan")
    yield Sample(nan, 0)
    yield Sample(nan.to(torch.bfloat16), 0)
    yield Sample(nan.reshape(650, 2), 0)


def cumsums(make: Maker) -> Iterator[Sample]:
    for tensor in tensors(make, ALL):
        for dim in range(-1, tensor.dim() - 1):
            yield Sample(tensor, dim)
    yield Sample(make.tensor(2, 3, 4, 5), 2, out_dim_order=CHANNELS_LAST)
    yield Sample(make.tensor(), 0)
    yield Sample(make.tensor(0, 3), 0)
    yield Sample(make.tensor(9, 2, special=True), 0)
    yield Sample(make.tensor(30, dtype=torch.int32), 0, dtype=torch.float32)


def distinct(make: Maker, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """All elements differ, so that the order of equals does not matter."""
    count = torch.Size(shape).numel()
    return torch.randperm(count, generator=make.generator).reshape(shape).to(dtype)


def topks(make: Maker) -> Iterator[Sample]:
    for largest, k in product((True, False), (0, 1, 3, 7)):
        yield Sample(distinct(make, 4, 7), k, -1, largest)
        yield Sample(distinct(make, 7, 5), k, 0, largest)
        yield Sample(distinct(make, 2, 7, 6), k, 1, largest)
    for dtype in (torch.float64, torch.float16, torch.bfloat16, *INTEGRAL):
        yield Sample(distinct(make, 100, dtype=dtype), 10)
    yield Sample(distinct(make, 3, 3000), 2000, 1)
    yield Sample(torch.tensor([1.0, float("nan"), 3.0, float("-inf")]), 3)
    yield Sample(torch.tensor([1.0, float("nan"), 3.0, float("-inf")]), 4, 0, False)
    yield Sample(make.tensor(), 1)


def trils(make: Maker) -> Iterator[Sample]:
    for shape, diagonal in product(((5, 5), (3, 7), (7, 3), (2, 3, 4, 5)), (0, 1, -2, 9, -9)):
        yield Sample(make.tensor(*shape), diagonal)
    for dtype in ALL:
        yield Sample(make.tensor(6, 7, dtype=dtype))
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), 0)
    yield Sample(make.tensor(6, 7, order=(1, 0)), -(2**62))
    yield Sample(make.tensor(0, 7))


def tril(tensor: torch.Tensor, diagonal: int = 0) -> torch.Tensor:
    return torch.tril(tensor, max(-1000, diagonal))


SUM_TOLERANCE = (2e-6, 1e-5)

OPS = [
    OpCases("aten::sum.IntList_out", typed_sums, tolerance=SUM_TOLERANCE),
    OpCases("aten::mean.out", typed_means),
    OpCases("aten::mean.dtype_out", over_all(FLOATING), reference=torch.mean),
    OpCases("aten::prod.int_out", products, tolerance=(1e-5, 1e-6)),
    OpCases("aten::prod.out", products_all, tolerance=(1e-5, 1e-6)),
    OpCases("aten::amax.out", over_dims(ALL, ([],), zero_size=False)),
    OpCases("aten::amin.out", over_dims(ALL, ([],), zero_size=False)),
    OpCases("aten::max.unary_out", over_all(ALL, zero_size=False)),
    OpCases("aten::min.unary_out", over_all(ALL, zero_size=False)),
    OpCases("aten::any.out", sparse(over_one(ALL))),
    OpCases("aten::any.dims_out", sparse(over_dims(ALL, ([], None)))),
    OpCases("aten::any.all_out", sparse(over_all(ALL))),
    OpCases("aten::var.out", variances, tolerance=SUM_TOLERANCE),
    OpCases("aten::var.correction_out", corrected, tolerance=SUM_TOLERANCE),
    OpCases("aten::var_mean.correction_out", corrected, tolerance=SUM_TOLERANCE),
    OpCases("aten::argmax.out", args),
    OpCases("aten::argmin.out", args),
    OpCases("aten::max.dim_max", over_one(ALL, zero_size=False)),
    OpCases("aten::min.dim_min", over_one(ALL, zero_size=False)),
    OpCases("aten::cumsum.out", cumsums, tolerance=SUM_TOLERANCE),
    OpCases("aten::topk.values", topks),
    OpCases("aten::tril.out", trils, reference=tril),
]

ERRORS = [
    ErrorCase(
        "aten::sum.IntList_out",
        lambda make: [make.tensor(2, 3), [2], False, None, make.tensor(2)],
        "dim is 2",
    ),
    ErrorCase(
        "aten::sum.IntList_out",
        lambda make: [make.tensor(2, 3), [0, -2], False, None, make.tensor(3)],
        "named twice",
    ),
    ErrorCase(
        "aten::mean.out",
        lambda make: [make.tensor(3), [0], False, None, make.integers(low=0, high=9)],
        "out is int64",
    ),
    ErrorCase(
        "aten::amax.out",
        lambda make: [make.tensor(0, 3), [0], False, make.tensor(3)],
        "no elements",
    ),
    ErrorCase(
        "aten::argmax.out", lambda make: [make.tensor(3), 0, False, make.tensor()], "out is float32"
    ),
    ErrorCase(
        "aten::topk.values",
        lambda make: [
            make.tensor(3),
            4,
            0,
            True,
            True,
            make.tensor(4),
            make.integers(4, low=0, high=9),
        ],
        "k is 4",
    ),
    ErrorCase("aten::tril.out", lambda make: [make.tensor(3), 0, make.tensor(3)], "two dimensions"),
    ErrorCase(
        "aten::var.correction_out",
        lambda make: [make.integers(3, low=0, high=9), None, None, False, make.tensor()],
        "self is int64",
    ),
]
