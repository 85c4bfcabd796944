"""Timed calls of sorting, ranks, scans, searching, folds into places and random numbers, for
`kernels.py`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from cases.kernel_cases import Case, Inputs


def ordering() -> Iterator[Case]:
    """Sorting, ranks and the most frequent element of rows and columns."""
    for dim, note in ((1, "rows"), (0, "columns")):
        yield Case("aten::sort.values", lambda t, d=dim: (t.x, d, False), note)
        yield Case("aten::sort.values_stable", lambda t, d=dim: (t.x, True, d, True), note)
        yield Case("aten::kthvalue.values", lambda t, d=dim: (t.x, t.x.shape[d] // 2, d), note)
        for name in ("median.dim_values", "nanmedian.dim_values", "mode.values"):
            yield Case(f"aten::{name}", lambda t, d=dim: (t.x, d), note)
    yield Case("aten::sort.values", lambda t: (t.tensor(t.n), 0, False), "one row")
    for name in ("median", "nanmedian"):
        yield Case(f"aten::{name}.out", lambda t: (t.x,), "all")


def scans() -> Iterator[Case]:
    """Running results along rows and columns."""
    for dim, note in ((1, "rows"), (0, "columns")):
        for name in ("cummax", "cummin", "cumprod", "logcumsumexp"):
            yield Case(f"aten::{name}.out", lambda t, d=dim: (t.x, d), note)


def searching() -> Iterator[Case]:
    """Places in sorted boundaries, counts of bins."""

    def bounds(t: Inputs, n: int) -> torch.Tensor:
        return t.tensor(n).sort().values

    yield Case("aten::bucketize.Tensor_out", lambda t: (t.x, bounds(t, t.cols)))
    yield Case("aten::bucketize.Scalar_out", lambda t: (1, bounds(t, t.n)))
    yield Case("aten::searchsorted.Tensor_out", lambda t: (bounds(t, t.cols), t.x))
    yield Case(
        "aten::searchsorted.Tensor_out", lambda t: (t.x.sort(dim=1).values, t.x), "rows of bounds"
    )
    yield Case("aten::searchsorted.Scalar_out", lambda t: (bounds(t, t.n), 1))
    yield Case("aten::histc.out", lambda t: (t.x, 100, 0, 1))


def folds() -> Iterator[Case]:
    """Scatters that reduce, and those that take elements one after another."""
    for dim, note in ((1, "rows"), (0, "columns")):

        def index(t: Inputs, dim: int = dim) -> torch.Tensor:
            return t.index(t.x.shape[dim], t.rows, t.cols)

        for how in ("add", "multiply"):
            text = f"{how}, {note}"
            yield Case(
                "aten::scatter.reduce_out",
                lambda t, d=dim, i=index, h=how: (t.x, d, i(t), t.x, h),
                text,
            )
            yield Case(
                "aten::scatter.value_reduce_out",
                lambda t, d=dim, i=index, h=how: (t.x, d, i(t), 1, h),
                text,
            )
        for how in ("sum", "prod", "amax", "amin"):
            yield Case(
                "aten::scatter_reduce.two_out",
                lambda t, d=dim, i=index, h=how: (t.x, d, i(t), t.x, h),
                f"{how}, {note}",
            )
    yield Case("aten::masked_scatter.out", lambda t: (t.x, t.mask, t.x))


def random() -> Iterator[Case]:
    """Random numbers; eager's generator is its default one."""
    for name in ("rand_like", "randn_like", "random", "uniform", "exponential", "cauchy"):
        yield Case(f"aten::{name}.out", lambda t: (t.x,))
    for name in ("log_normal", "bernoulli", "poisson"):
        yield Case(f"aten::{name}.out", lambda t: (t.x,))
    for name in ("rand", "randn"):
        yield Case(f"aten::{name}.out", lambda t: ([t.rows, t.cols],))
    yield Case("aten::normal.float_float_out", lambda t: (0.0, 1.0, [t.rows, t.cols]))
    yield Case("aten::geometric.out", lambda t: (t.x, 0.5))
    yield Case("aten::bernoulli.float_out", lambda t: (t.x, 0.5))
    yield Case("aten::bernoulli.Tensor_out", lambda t: (t.x, torch.rand(t.rows, t.cols)))
    yield Case("aten::randint.out", lambda t: (100, [t.rows, t.cols]))
    yield Case("aten::randint.low_out", lambda t: (-100, 100, [t.rows, t.cols]))
    yield Case("aten::randint_like.out", lambda t: (t.x, 100))
    yield Case("aten::randint_like.low_dtype_out", lambda t: (t.x, 3, 100))
    yield Case("aten::randperm.out", lambda t: (t.n,))
    yield Case("aten::multinomial.out", lambda t: (t.x, 1))
    yield Case("aten::multinomial.out", lambda t: (t.x, t.cols, True), "with replacement")
    yield Case("aten::native_dropout.out", lambda t: (t.x, 0.5, True))


def different() -> Iterator[Case]:
    """Different elements, and counts."""
    for op in ("_unique2.out", "unique_consecutive.out"):
        yield Case(f"aten::{op}", lambda t: (t.index(1000, t.n).to(t.dtype),))
    yield Case("aten::unique_dim.out", lambda t: (t.index(9, t.n // 4, 4).to(t.dtype), 0))
    yield Case("aten::bincount.out", lambda t: (t.index(100, t.n),))


def order_cases() -> Iterator[Case]:
    """All of them."""
    yield from different()
    yield from ordering()
    yield from scans()
    yield from searching()
    yield from folds()
    yield from random()
