"""Timed calls of linear algebra, for `kernels.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from cases.kernel_cases import Case, Inputs


def square(t: Inputs) -> torch.Tensor:
    """A matrix far from singular."""
    side = int(t.n**0.5)
    return t.tensor(side, side) + side * torch.eye(side)


def factors(t: Inputs) -> tuple[Any, ...]:
    return torch.linalg.lu_factor(square(t))


def linalg_cases() -> Iterator[Case]:
    """All of them."""
    yield Case("aten::geqrf.a", lambda t: (square(t),))
    yield Case("aten::linalg_cholesky_ex.L", lambda t: (square(t) @ square(t).t(),))
    yield Case("aten::linalg_householder_product.out", lambda t: torch.geqrf(square(t)))
    yield Case("aten::linalg_lu_factor_ex.out", lambda t: (square(t),))
    yield Case("aten::linalg_lu_solve.out", lambda t: (*factors(t), square(t)))
    yield Case(
        "aten::linalg_solve_triangular.out",
        lambda t: (square(t), square(t), True),
    )
    yield Case("aten::lu_unpack.out", factors)
