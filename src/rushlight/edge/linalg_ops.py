"""Rules for linear algebra, in terms of the few factorisations and solvers that have kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from rushlight.ir.torch_release import known_operators

aten = torch.ops.aten
Tensor = torch.Tensor


def _check(info: Tensor, name: str) -> None:
    """Assert that every matrix was factorised: eager raises if not, so the program does too."""
    aten._assert_async.msg(
        (info == 0).all(), f"{name}: a matrix is singular, or not positive-definite"
    )


def _transposed(x: Tensor) -> Tensor:
    return x.transpose(-2, -1)


def _identity(like: Tensor) -> Tensor:
    n = like.shape[-1]
    return torch.eye(n, dtype=like.dtype, device=like.device).expand(like.shape)


def _cholesky(self: Tensor, *, upper: bool = False) -> Tensor:
    factor, info = aten.linalg_cholesky_ex.default(self, upper=upper)
    _check(info, "linalg.cholesky")
    return factor  # type: ignore[no-any-return]


def _old_cholesky(self: Tensor, upper: bool = False) -> Tensor:
    return _cholesky(self, upper=upper)


def _cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    lower = _transposed(input2) if upper else input2
    half = torch.linalg.solve_triangular(lower, self, upper=False)
    result: Tensor = torch.linalg.solve_triangular(_transposed(lower), half, upper=True)
    return result


def _cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    return _cholesky_solve(_identity(self), self, upper)


def _solve(
    a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    factors, pivots, info = aten.linalg_lu_factor_ex.default(a, check_errors=check_errors)
    # One vector for each matrix; torch.linalg.solve distinguishes vectors from matrices like this.
    vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1])
    columns = b.unsqueeze(-1) if vector else b
    result = aten.linalg_lu_solve.default(factors, pivots, columns, left=left)
    return result.squeeze(-1) if vector else result, factors, pivots, info


def _checked_solve(a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    result, _, _, info = aten._linalg_solve_ex.default(a, b, left=left)
    _check(info, "linalg.solve")
    return result  # type: ignore[no-any-return]


def _inverse(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    result, _, _, info = _solve(a, _identity(a), check_errors=check_errors)
    return result, info


def _checked_inverse(a: Tensor) -> Tensor:
    result, info = aten.linalg_inv_ex.default(a)
    _check(info, "linalg.inv")
    return result  # type: ignore[no-any-return]


def _tensor_inverse(self: Tensor, ind: int = 2) -> Tensor:
    first, last = self.shape[:ind], self.shape[ind:]
    matrix = self.reshape(math.prod(last), -1)
    return _checked_inverse(matrix).reshape(*last, *first)


def _lu_factor(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    factors, pivots, info = aten.linalg_lu_factor_ex.default(a, pivot=pivot)
    _check(info, "linalg.lu_factor")
    return factors, pivots


def _lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots, _ = aten.linalg_lu_factor_ex.default(a, pivot=pivot)
    return aten.lu_unpack.default(factors, pivots, True, pivot)  # type: ignore[no-any-return]


def _sign_of(pivots: Tensor) -> Tensor:
    """1 for an even number of swaps, else -1."""
    places = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    swaps = (pivots != places).sum(-1)
    return 1 - 2 * (swaps % 2)


def _det(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots, _ = aten.linalg_lu_factor_ex.default(a)
    diagonal = factors.diagonal(0, -2, -1)
    return diagonal.prod(-1) * _sign_of(pivots), factors, pivots


def _slogdet(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    factors, pivots, _ = aten.linalg_lu_factor_ex.default(a)
    diagonal = factors.diagonal(0, -2, -1)
    sign = diagonal.sign().prod(-1) * _sign_of(pivots)
    return sign, diagonal.abs().log().sum(-1), factors, pivots


def _qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    rows, cols = a.shape[-2], a.shape[-1]
    least = min(rows, cols)
    factors, tau = aten.geqrf.default(a)
    whole = mode == "complete"
    r = (factors if whole else factors[..., :least, :]).triu()
    if mode == "r":
        return a.new_empty(0), r
    if whole and rows > cols:
        factors = torch.nn.functional.pad(factors, (0, rows - cols))
    width = rows if whole else least
    q = aten.linalg_householder_product.default(factors[..., :width], tau)
    return q, r


def _ormqr(
    self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    rows, cols = self.shape[-2], self.shape[-1]
    square = torch.nn.functional.pad(self, (0, rows - cols)) if rows > cols else self[..., :rows]
    q = aten.linalg_householder_product.default(square, input2)
    q = _transposed(q) if transpose else q
    return q @ input3 if left else input3 @ q


def _triangular_solve(
    self: Tensor,
    a: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    matrix = _transposed(a) if transpose else a
    solution = torch.linalg.solve_triangular(
        matrix, self, upper=upper != transpose, unitriangular=unitriangular
    )
    return solution, a.expand(*solution.shape[:-2], *a.shape[-2:]).clone()


LINALG_DECOMPOSITIONS: dict[OpOverload, Callable[..., Any]] = {
    **known_operators({"cholesky": _old_cholesky}),
    aten._linalg_det.default: _det,
    aten._linalg_slogdet.default: _slogdet,
    aten._linalg_solve_ex.default: _solve,
    aten.cholesky_inverse.default: _cholesky_inverse,
    aten.cholesky_solve.default: _cholesky_solve,
    aten.linalg_cholesky.default: _cholesky,
    aten.linalg_inv.default: _checked_inverse,
    aten.linalg_inv_ex.default: _inverse,
    aten.linalg_lu.default: _lu,
    aten.linalg_lu_factor.default: _lu_factor,
    aten.linalg_qr.default: _qr,
    aten.linalg_solve.default: _checked_solve,
    aten.linalg_tensorinv.default: _tensor_inverse,
    aten.ormqr.default: _ormqr,
    aten.triangular_solve.default: _triangular_solve,
}
