"""Cases of sorting, of elements by rank, and of places in sorted sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...harness import FLOATING, INTEGRAL, REAL, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)
TYPES = (*REAL, torch.bool)
NAN = float("nan")


def low_of(dtype: torch.dtype) -> float:
    return 0.0 if dtype in (torch.uint8, torch.bool) else -9.0


def rows(make: Maker, dtypes: tuple[torch.dtype, ...]) -> Iterator[tuple[torch.Tensor, int]]:
    """Tensors, many with equal elements, and a dimension of each."""
    for dtype in dtypes:
        low = low_of(dtype)
        yield make.tensor(4, 5, 6, dtype=dtype, low=low, high=9.0), 1
        yield make.tensor(4, 300, dtype=dtype, low=low, high=9.0), -1
    yield make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), 1
    yield make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), 3
    yield make.tensor(1500), 0
    yield make.tensor(1500, dtype=torch.float64), 0
    yield torch.randint(-(2**62), 2**62, (700,), generator=make.generator), 0
    yield make.tensor(), 0
    yield make.tensor(1, 4), 0


def special(make: Maker) -> Iterator[torch.Tensor]:
    for dtype in FLOATING:
        yield make.tensor(3, 20, dtype=dtype, special=True)
        yield torch.full((2, 5), NAN, dtype=dtype)
        yield torch.tensor([[1.0, NAN, 0.0, -0.0, NAN, -1.0]], dtype=dtype)


def sort(make: Maker) -> Iterator[Sample]:
    for tensor, dim in rows(make, TYPES):
        for descending in (False, True):
            yield Sample(tensor, stable=True, dim=dim, descending=descending)
    for tensor in special(make):
        for descending in (False, True):
            yield Sample(tensor, stable=True, dim=-1, descending=descending)
    yield Sample(torch.zeros(3, 0), stable=True, dim=1)
    yield Sample(torch.zeros(0, 3), stable=None, dim=1)
    for tensor in long_rows(make):
        for dim in (0, 1):
            yield Sample(tensor, stable=True, dim=dim, descending=dim == 0)


def long_rows(make: Maker) -> Iterator[torch.Tensor]:
    """Two rows, or columns, that little scratch memory does not hold."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.uint8, torch.int64):
        yield make.tensor(2, 3000, dtype=dtype, low=0.0, high=200.0)
        yield make.tensor(3000, 2, dtype=dtype, low=0.0, high=200.0)
    # One far from all others, which leaves them in one bucket.
    wide = make.tensor(2, 3000, dtype=torch.int64, low=-1e9, high=1e9)
    wide[0, 7] = 2**62
    yield wide


def plain_sort(make: Maker) -> Iterator[Sample]:
    for sample in sort(make):
        tensor, kwargs = sample.args[0], sample.kwargs
        yield Sample(tensor, kwargs["dim"], kwargs.get("descending", False))


def stable_sort(self: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    """Where eager promises no order among equals, the kernel keeps it."""
    return torch.sort(self, stable=True, dim=dim, descending=descending)


def by_rank(make: Maker) -> Iterator[Sample]:
    for tensor, dim in rows(make, REAL):
        for keepdim in (False, True):
            yield Sample(tensor, dim, keepdim)
    for tensor in special(make):
        yield Sample(tensor, -1)
    yield Sample(torch.zeros(0, 3), 1)


def of_all(make: Maker) -> Iterator[Sample]:
    for tensor, _ in rows(make, REAL):
        yield Sample(tensor)
    for tensor in special(make):
        yield Sample(tensor)
    for dtype in (*FLOATING, torch.int32, torch.int64):
        yield Sample(torch.zeros(0, dtype=dtype))


def kthvalue(make: Maker) -> Iterator[Sample]:
    for tensor, dim in rows(make, REAL):
        n = tensor.shape[dim] if tensor.dim() else 1
        for k in {1, (n + 1) // 2, n}:
            yield Sample(tensor, k, dim, k == 1)
    for tensor in special(make):
        yield Sample(tensor, 3, -1)


def mode(make: Maker) -> Iterator[Sample]:
    for tensor, dim in rows(make, TYPES):
        for keepdim in (False, True):
            yield Sample(tensor, dim, keepdim)


BOUNDARY_TYPES = (*INTEGRAL, *FLOATING)


def searchsorted(make: Maker) -> Iterator[Sample]:
    for dtype in BOUNDARY_TYPES:
        low = low_of(dtype)
        sequence = make.tensor(3, 9, dtype=dtype, low=low, high=9.0).sort(-1).values
        values = make.tensor(3, 5, dtype=dtype, low=low, high=9.0)
        yield Sample(sequence, values)
        yield Sample(sequence, values, right=True)
        yield Sample(sequence[0].contiguous(), make.tensor(2, 3, 4, dtype=dtype, low=low, high=9.0))
    row = make.tensor(8)
    yield Sample(row, make.tensor(5), sorter=row.argsort())
    yield Sample(row.sort().values, make.tensor(5), side="right", out_int32=True)
    yield Sample(row.sort().values, make.tensor(5), side="left")
    yield Sample(torch.tensor([0.0, 1.0, NAN]), torch.tensor([0.5, NAN, 2.0]))
    yield Sample(torch.tensor([0.0, 1.0, NAN]), torch.tensor([0.5, NAN, 2.0]), right=True)
    yield Sample(torch.zeros(0), make.tensor(3))
    yield Sample(row.sort().values, torch.zeros(2, 0))


def searchsorted_scalar(make: Maker) -> Iterator[Sample]:
    for value in (-9, 0.5, 9):
        yield Sample(make.tensor(8).sort().values, value)
        yield Sample(make.tensor(8, dtype=torch.int64).sort().values, value, right=True)


def bucketize(make: Maker) -> Iterator[Sample]:
    for dtype in BOUNDARY_TYPES:
        low = low_of(dtype)
        boundaries = make.tensor(7, dtype=dtype, low=low, high=9.0).sort().values
        for right in (False, True):
            values = make.tensor(4, 5, dtype=dtype, low=low, high=9.0)
            yield Sample(values, boundaries, right=right)
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), make.tensor(7).sort().values)
    yield Sample(make.tensor(3), torch.zeros(0), out_int32=True)


def bucketize_scalar(make: Maker) -> Iterator[Sample]:
    for value in (-9, 0.5, 9):
        yield Sample(value, make.tensor(8).sort().values)


def histc(make: Maker) -> Iterator[Sample]:
    for dtype in (torch.float32, torch.float64):
        yield Sample(make.tensor(300, dtype=dtype))
        yield Sample(make.tensor(30, 40, dtype=dtype), 7, -2, 3)
        yield Sample(torch.arange(10, dtype=dtype), 10, 0, 10)
        yield Sample(torch.full((4,), 2.0, dtype=dtype), 5)
        yield Sample(torch.zeros(0, dtype=dtype), 5, 0, 1)
    yield Sample(torch.tensor([NAN, 0.5, 7.0]), 4, 0, 1)


OPS = [
    OpCases("aten::sort.values", plain_sort, reference=stable_sort),
    OpCases("aten::sort.values_stable", sort),
    OpCases("aten::median.out", of_all),
    OpCases("aten::nanmedian.out", of_all),
    OpCases("aten::median.dim_values", by_rank),
    OpCases("aten::nanmedian.dim_values", by_rank),
    OpCases("aten::kthvalue.values", kthvalue),
    OpCases("aten::mode.values", mode),
    OpCases("aten::searchsorted.Tensor_out", searchsorted),
    OpCases("aten::searchsorted.Scalar_out", searchsorted_scalar),
    OpCases("aten::bucketize.Tensor_out", bucketize),
    OpCases("aten::bucketize.Scalar_out", bucketize_scalar),
    OpCases("aten::histc.out", histc),
]


def f(*shape: int) -> torch.Tensor:
    """A float32 tensor of zeros."""
    return torch.zeros(shape)


def i(*shape: int) -> torch.Tensor:
    """An int64 tensor of zeros."""
    return torch.zeros(shape, dtype=torch.int64)


ERRORS = [
    ErrorCase("aten::sort.values", lambda make: [f(3), 1, False, f(3), i(3)], "dim is 1, but"),
    ErrorCase(
        "aten::sort.values_stable",
        lambda make: [f(3), True, 0, False, f(3), f(3)],
        "indices is float32, but must be int64",
    ),
    ErrorCase("aten::median.out", lambda make: [f(3), i()], "out is int64, but must be float32"),
    ErrorCase(
        "aten::nanmedian.out", lambda make: [f(3).cfloat(), f().cfloat()], "self is complex64"
    ),
    ErrorCase(
        "aten::median.dim_values",
        lambda make: [f(3, 0), 1, False, f(3), i(3)],
        r"self has sizes \(3, 0\): dimension 1 has no elements",
    ),
    ErrorCase(
        "aten::nanmedian.dim_values",
        lambda make: [f(3), 0, False, i(), i()],
        "values is int64, but must be float32",
    ),
    ErrorCase(
        "aten::kthvalue.values",
        lambda make: [f(3), 4, 0, False, f(), i()],
        "k is 4, but must be from 1 to 3",
    ),
    ErrorCase(
        "aten::mode.values", lambda make: [f(0), 0, False, f(), i()], "dimension 0 has no elements"
    ),
    ErrorCase(
        "aten::searchsorted.Tensor_out",
        lambda make: [f(2, 3), f(3, 3), False, False, None, None, i(3, 3)],
        r"the sequence has shape \(2, 3\)",
    ),
    ErrorCase(
        "aten::searchsorted.Tensor_out",
        lambda make: [f(3), f(2), False, True, "left", None, i(2)],
        "side is 'left'",
    ),
    ErrorCase(
        "aten::searchsorted.Tensor_out",
        lambda make: [f(3), f(2), False, False, None, torch.tensor([0, 1, 3]), i(2)],
        "sorter holds the index 3, which must be from 0 to 2",
    ),
    ErrorCase(
        "aten::searchsorted.Scalar_out",
        lambda make: [f(2, 3), 1.0, False, False, None, None, i()],
        "sorted_sequence has shape",
    ),
    ErrorCase(
        "aten::bucketize.Tensor_out",
        lambda make: [f(3), f(2, 2), False, False, i(3)],
        "boundaries has shape",
    ),
    ErrorCase(
        "aten::bucketize.Scalar_out",
        lambda make: [1.0, f(2), True, False, i()],
        "out is int64, but must be int32",
    ),
    ErrorCase("aten::histc.out", lambda make: [f(3), 0, 0, 1, f(0)], "bins is 0, but"),
    ErrorCase("aten::histc.out", lambda make: [f(3), 2, 3, 1, f(2)], "min is 3 and max is 1"),
    ErrorCase(
        "aten::histc.out",
        lambda make: [torch.tensor([NAN]), 2, 0, 0, f(2)],
        "range .* is not finite",
    ),
]
