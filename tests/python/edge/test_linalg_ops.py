"""Rules for linear algebra equal eager, also in forms that torch's database does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from graphs import core, run

SQUARE = torch.tensor([[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 0.5, 6.0]])
BATCH = torch.stack([SQUARE, SQUARE.t().contiguous()])
FACTORS, TAU = torch.geqrf(torch.arange(15.0).reshape(5, 3).sin())

CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "reflectors of a wide matrix": (torch.ormqr, (FACTORS.t()[:, :4], TAU, torch.ones(3, 2))),
    "reflectors of a tall one": (torch.ormqr, (FACTORS, TAU, torch.ones(5, 2))),
    "reflectors on the right": (
        lambda a, tau, b: torch.ormqr(a, tau, b, False, True),
        (FACTORS, TAU, torch.ones(2, 5)),
    ),
    "an inverse of one half": (lambda x: torch.cholesky_inverse(x), (BATCH,)),
    "an inverse of the other": (lambda x: torch.cholesky_inverse(x, True), (BATCH,)),
    "vectors for many matrices": (torch.linalg.solve, (BATCH, torch.ones(2, 3))),
    "one vector for many": (torch.linalg.solve, (BATCH, torch.ones(3))),
    "no columns": (lambda x: torch.linalg.qr(x, "complete"), (torch.ones(5, 0),)),
    "no rows": (torch.linalg.slogdet, (torch.ones(2, 0, 0),)),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str) -> None:
    function, args = CASES[name]
    wanted = function(*args)
    wanted = tuple(wanted) if isinstance(wanted, tuple) else (wanted,)
    got = tuple(run(core(function, *args), *args))
    torch.testing.assert_close(got, wanted, equal_nan=True, check_stride=False)


def test_factors_without_pivots_have_no_permutation() -> None:
    """Eager has them only on other devices, but torch.export captures them."""
    program = core(lambda x: torch.linalg.lu(x, pivot=False), SQUARE)
    p, lower, upper = (n.meta["val"] for n in program.graph.output_node().args[0])
    assert p.shape == (0,)
    assert lower.shape == upper.shape == (3, 3)
