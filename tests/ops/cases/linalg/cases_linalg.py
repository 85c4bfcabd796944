"""Factorisations of matrices, and systems of linear equations."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...harness import ErrorCase, Maker, OpCases, Sample

aten = torch.ops.aten
WIDE = (torch.float32, torch.float64)
SHAPES = (
    (1, 1),
    (3, 3),
    (5, 3),
    (3, 7),
    (2, 4, 4),
    (2, 1, 6, 4),
    (0, 3, 3),
    (2, 0, 0),
    (40, 40),
    (150, 150),
)


def matrices(make: Maker, square: bool = False) -> Iterator[torch.Tensor]:
    """Of all shapes, in both orders of dimensions, far from singular."""
    for dtype in WIDE:
        for shape in SHAPES:
            if square and shape[-1] != shape[-2]:
                continue
            x = make.tensor(*shape, dtype=dtype)
            rows = torch.arange(shape[-2]).unsqueeze(1) == (torch.arange(shape[-1]) + 1)
            x = x + (9 + 2 * shape[-1]) * rows.to(dtype)
            yield x
            yield x.transpose(-2, -1).contiguous().transpose(-2, -1)


def lu_factor(make: Maker) -> Iterator[Sample]:
    for x in matrices(make):
        yield Sample(x)
    yield Sample(torch.zeros(3, 3))
    yield Sample(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))


def cholesky(make: Maker) -> Iterator[Sample]:
    for x in matrices(make, square=True):
        positive = x @ x.transpose(-2, -1) + torch.eye(x.shape[-1], dtype=x.dtype)
        yield Sample(positive)
        yield Sample(positive.tril())
        yield Sample(positive, upper=True)


def geqrf(make: Maker) -> Iterator[Sample]:
    for x in matrices(make):
        yield Sample(x)
    yield Sample(torch.empty(0, 2**31 - 1, 2**31 - 1))
    yield Sample(torch.zeros(3, 2))
    yield Sample(torch.tensor([[2.0, 1.0], [0.0, 3.0]]))
    yield Sample(torch.tensor([[1.0, 2.0], [float("nan"), 3.0], [0.0, 1.0]]))


def householder(make: Maker) -> Iterator[Sample]:
    for x in matrices(make):
        factors, tau = torch.geqrf(x)
        if x.shape[-2] >= x.shape[-1]:
            yield Sample(factors, tau)
            if x.shape[-1] > 1:
                yield Sample(factors, tau[..., :1].contiguous())


def lu_unpack(make: Maker) -> Iterator[Sample]:
    for x in matrices(make):
        factors, pivots = torch.linalg.lu_factor(x)
        yield Sample(factors, pivots)
        yield Sample(factors, pivots, False, True)
        yield Sample(factors, pivots, True, False)


def sides(make: Maker, a: torch.Tensor) -> Iterator[tuple[torch.Tensor, bool]]:
    """What may stand on the other side of the equation, and where."""
    n, batch = a.shape[-1], a.shape[:-2]
    for left in (True, False):
        for shape in ((*batch, n, 3), (n, 1), (2, *[1] * len(batch), n, 2)):
            own = shape if left else (*shape[:-2], shape[-1], shape[-2])
            yield make.tensor(*own, dtype=a.dtype), left
    yield make.tensor(n, 3, dtype=a.dtype, order=(1, 0)), True


def lu_solve(make: Maker) -> Iterator[Sample]:
    for x in matrices(make, square=True):
        factors, pivots = torch.linalg.lu_factor(x)
        for b, left in sides(make, x):
            yield Sample(factors, pivots, b, left=left)
            yield Sample(factors, pivots, b, left=left, adjoint=True)


def solve_triangular(make: Maker) -> Iterator[Sample]:
    for x in matrices(make, square=True):
        x = x / (9 * max(1, x.shape[-1])) + 2 * torch.eye(x.shape[-1], dtype=x.dtype)
        for b, left in sides(make, x):
            for upper in (False, True):
                for unit in (False, True):
                    yield Sample(x, b, upper=upper, left=left, unitriangular=unit)


# Sums in another order than LAPACK's.
ROUGH = (2e-4, 2e-5)
OPS = [
    OpCases("aten::geqrf.a", geqrf, tolerance=ROUGH),
    OpCases("aten::linalg_cholesky_ex.L", cholesky, tolerance=ROUGH),
    OpCases("aten::linalg_householder_product.out", householder, tolerance=ROUGH),
    OpCases("aten::linalg_lu_factor_ex.out", lu_factor, tolerance=ROUGH),
    OpCases("aten::linalg_lu_solve.out", lu_solve, tolerance=ROUGH),
    OpCases("aten::linalg_solve_triangular.out", solve_triangular, tolerance=ROUGH),
    OpCases("aten::lu_unpack.out", lu_unpack),
]

A = torch.eye(3)
INFO = torch.zeros((), dtype=torch.int32)
PIVOTS = torch.tensor([1, 2, 3], dtype=torch.int32)


def error(op: str, message: str, *args: object) -> ErrorCase:
    return ErrorCase(f"aten::{op}", lambda make: list(args), message)


ERRORS = [
    error(
        "linalg_cholesky_ex.L",
        r"self has shape \(2, 3\), but its matrices must be square",
        *(A[:2].clone(), False, False, torch.zeros(2, 3), INFO),
    ),
    error(
        "linalg_cholesky_ex.L",
        "matrix 0 has no factorisation: its leading minor of order 2",
        *(torch.diag(torch.tensor([1.0, -1.0, 1.0])), False, True, A.clone(), INFO.clone()),
    ),
    error(
        "linalg_cholesky_ex.L",
        r"self has shape \(3,\), but must be a matrix",
        *(torch.ones(3), False, False, torch.ones(3), INFO),
    ),
    error(
        "linalg_lu_factor_ex.out",
        "matrix 0 has no factorisation: its leading minor of order 1",
        *(torch.zeros(3, 3), True, True, A.clone(), PIVOTS.clone(), INFO.clone()),
    ),
    error(
        "linalg_lu_solve.out",
        "pivots holds 4, but there are rows from 1 to 3",
        *(A, PIVOTS + 1, A, True, False, A.clone()),
    ),
    error(
        "linalg_lu_solve.out",
        r"which pivots of shape \(2,\) do not fit",
        *(A, PIVOTS[:2].clone(), A, True, False, A.clone()),
    ),
    error("lu_unpack.out", "LU_pivots holds 0", A, PIVOTS - 1, True, True, A + 0, A + 0, A + 0),
    error(
        "linalg_solve_triangular.out",
        r"self has shape \(3, 3\) and B \(2, 3\), which do not fit for a solution on the left",
        *(A, torch.ones(2, 3), True, True, False, torch.ones(2, 3)),
    ),
    error(
        "linalg_householder_product.out",
        r"input has shape \(2, 3\) and tau \(2,\)",
        *(torch.ones(2, 3), torch.ones(2), torch.ones(2, 3)),
    ),
]
