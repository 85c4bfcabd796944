"""Bessel functions, Airy's, and orthogonal polynomials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import torch

from ...cases.elementwise.cases_special import LOOSE, WIDE, Samples, unary
from ...harness import INTEGRAL, ErrorCase, Maker, OpCases, Sample

aten = torch.ops.aten


def exactly(operator: Any, exact: Callable[[float], Any]) -> Callable[..., torch.Tensor]:
    """Eager's values in float64, of which nine digits are right, rounded; for float64 mpmath's
    where those are finite."""

    def reference(x: torch.Tensor) -> torch.Tensor:
        shaped = operator(x.double())
        if x.dtype != torch.float64:
            kind = x.dtype if x.dtype.is_floating_point else torch.float32
            return shaped.to(kind)  # type: ignore[no-any-return]
        finite = shaped.isfinite() & x.isfinite()
        values = [float(exact(v)) for v in x[finite].tolist()]
        shaped[finite] = torch.tensor(values, dtype=torch.float64).to(shaped.dtype)
        return shaped  # type: ignore[no-any-return]

    return reference


def bessel(name: str, low: float, high: float, exact: Callable[[float], Any]) -> OpCases:
    samples = unary(low, high, special=False, dtypes=WIDE + INTEGRAL)

    def with_ends(make: Maker) -> Iterator[Sample]:
        yield from samples(make)
        ends = torch.tensor([0.0, -0.0, 1e-30, -1e-5, 0.3, 1.99, 2.0, 2.01, 2.3, float("nan")])
        infinite = torch.tensor([float("inf"), -float("inf")])
        for dtype in WIDE:
            yield Sample(ends.to(dtype))
            yield Sample(infinite.to(dtype))
        if name == "special_airy_ai":
            yield Sample(torch.tensor([150.0, 1e300], dtype=torch.float64))
        if "bessel_k" in name:
            yield Sample(torch.tensor([1e-323, 1e-310, 600.0], dtype=torch.float64))
        yield Sample(torch.linspace(low, high, 61, dtype=torch.float64))

    return OpCases(f"aten::{name}.out", with_ends, exactly(getattr(aten, name), exact), LOOSE)


BESSEL = {
    "special_airy_ai": (-12, 12, mpmath.airyai),
    "special_bessel_j0": (-30, 30, mpmath.j0),
    "special_bessel_j1": (-30, 30, mpmath.j1),
    "special_bessel_y0": (-1, 30, lambda x: mpmath.bessely(0, x)),
    "special_bessel_y1": (-1, 30, lambda x: mpmath.bessely(1, x)),
    "special_modified_bessel_i0": (-20, 20, lambda x: mpmath.besseli(0, x)),
    "special_modified_bessel_i1": (-20, 20, lambda x: mpmath.besseli(1, x)),
    "special_modified_bessel_k0": (-1, 30, lambda x: mpmath.besselk(0, x)),
    "special_modified_bessel_k1": (-1, 30, lambda x: mpmath.besselk(1, x)),
    "special_scaled_modified_bessel_k0": (-1, 90, lambda x: mpmath.besselk(0, x) * mpmath.exp(x)),
    "special_scaled_modified_bessel_k1": (-1, 90, lambda x: mpmath.besselk(1, x) * mpmath.exp(x)),
    "special_spherical_bessel_j0": (-30, 30, mpmath.sinc),
}


def polynomial(low: float, high: float) -> Samples:
    def samples(make: Maker) -> Iterator[Sample]:
        for dtype in WIDE:
            x = make.tensor(5, 40, dtype=dtype, low=low, high=high)
            x[0, :4] = torch.tensor([0.0, 1.0, -1.0, 0.5])
            yield Sample(x, make.integers(5, 40, low=-2, high=13).to(dtype))
            yield Sample(x, torch.arange(-1, 14).reshape(15, 1, 1).to(dtype))
        ends = torch.tensor([0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), -float("inf")])
        degrees = torch.tensor([-1.0, 0.0, 1.0, 2.0, 3.7, 5.0, 6.0, 7.0, 8.0, 9.0])
        yield Sample(ends.unsqueeze(1), degrees)
        yield Sample(make.integers(5, low=-3, high=3), make.integers(5, low=0, high=4))
        yield Sample(make.tensor(0, 3), make.tensor(3))
        # Of so high a degree that float32 overflows where float64 does not.
        yield Sample(torch.tensor([5.0, -5.0]), torch.tensor([90.0]))
        yield Sample(torch.tensor([5.0, -5.0], dtype=torch.float64), torch.tensor([90.0]))
        yield Sample(torch.tensor([2.0, -2.0]), torch.tensor([129.0, 128.0]))

    return samples


def scalar_degree(make: Maker) -> Iterator[Sample]:
    for n in (0, 3, 9):
        yield Sample(make.tensor(4, 5, low=-1, high=1), n)
    yield Sample(make.tensor(4, 5, low=-1, high=1, dtype=torch.float64), 2.0)


def scalar_place(make: Maker) -> Iterator[Sample]:
    for x in (0.3, 1.0, -2):
        yield Sample(x, make.integers(7, low=-1, high=9))
        yield Sample(x, make.integers(7, low=-1, high=9).double())


POLYNOMIALS = {
    **{f"chebyshev_polynomial_{kind}": (-1.5, 1.5) for kind in "tuvw"},
    **{f"shifted_chebyshev_polynomial_{kind}": (-0.2, 1.2) for kind in "tuvw"},
    "hermite_polynomial_h": (-2.0, 2.0),
    "hermite_polynomial_he": (-2.0, 2.0),
    "laguerre_polynomial_l": (-2.0, 4.0),
    "legendre_polynomial_p": (-1.5, 1.5),
}
# What float32 leaves of sums that nearly cancel, and of cosines of large multiples.
ROUGH = (1e-4, 1e-4)

OPS = [
    *(bessel(name, *arguments) for name, arguments in BESSEL.items()),
    *(
        OpCases(f"aten::special_{name}.{overload}", samples, tolerance=ROUGH)
        for name, (low, high) in POLYNOMIALS.items()
        for overload, samples in (
            ("n_scalar_out", scalar_degree),
            ("out", polynomial(low, high)),
            ("x_scalar_out", scalar_place),
        )
    ),
]

ERRORS = [
    ErrorCase(
        "aten::special_legendre_polynomial_p.out",
        lambda make: [make.tensor(2), torch.tensor([1.0, 2e6]), make.tensor(2)],
        "n is 2e.06, but must be at most 1048576",
    ),
    ErrorCase(
        "aten::special_laguerre_polynomial_l.n_scalar_out",
        lambda make: [make.tensor(2), 9_000_000_000, make.tensor(2)],
        "n is 9e.09, but must be at most 1048576",
    ),
]
