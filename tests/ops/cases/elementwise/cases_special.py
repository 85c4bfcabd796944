"""Special functions, and what looks into the bits of a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import torch

from ...harness import FLOATING, INTEGRAL, REAL, ErrorCase, Maker, OpCases, Sample

Samples = Callable[[Maker], Iterator[Sample]]


def unary(
    low: float, high: float, special: bool = True, dtypes: tuple[torch.dtype, ...] = REAL
) -> Samples:
    """Values from low to high in some dtypes; also a permuted, an empty and a 0-d tensor."""

    def samples(make: Maker) -> Iterator[Sample]:
        for dtype in dtypes:
            lowest = 0.0 if dtype == torch.uint8 and low < 0 else low
            yield Sample(make.tensor(5, 70, dtype=dtype, low=lowest, high=high))
        yield Sample(make.tensor(3, 4, dtype=torch.bool))
        yield Sample(make.tensor(4, 3, 5, low=low, high=high, order=[2, 0, 1]))
        yield Sample(make.tensor(0, 3, low=low, high=high))
        yield Sample(make.tensor(low=low, high=high))
        if special:
            yield Sample(make.tensor(3, 7, special=True, dtype=torch.float64))

    return samples


def binary(low: float, high: float, dtypes: tuple[torch.dtype, ...] = FLOATING) -> Samples:
    """Equal and broadcast shapes."""

    def samples(make: Maker) -> Iterator[Sample]:
        for dtype in dtypes:
            yield Sample(
                make.tensor(4, 33, dtype=dtype, low=low, high=high),
                make.tensor(4, 33, dtype=dtype, low=low, high=high),
            )
        dtype = dtypes[0]
        first = make.tensor(3, 1, 5, dtype=dtype, low=low, high=high)
        yield Sample(first, make.tensor(4, 1, dtype=dtype, low=low, high=high))
        yield Sample(first, make.tensor(dtype=dtype, low=low, high=high))
        yield Sample(first, make.tensor(0, 1, dtype=dtype))

    return samples


def hypot(make: Maker) -> Iterator[Sample]:
    """Also where the squares leave float64, at the ends, and beside NaN."""
    yield from binary(-5, 5)(make)
    ends = torch.tensor(
        [0.0, 1.0, -1.5, float("inf"), -float("inf"), float("nan"), 3e-310, 2e-200, 5e200, 1.2e308],
        dtype=torch.float64,
    )
    for dtype in FLOATING:
        yield Sample(ends.to(dtype).unsqueeze(1), ends.to(dtype))


def signbit(make: Maker) -> Iterator[Sample]:
    yield from unary(-5, 5)(make)
    for dtype in FLOATING:
        yield Sample(make.tensor(3, 7, special=True, dtype=dtype))
        yield Sample(-make.tensor(3, 7, special=True, dtype=dtype))


def polygamma(make: Maker) -> Iterator[Sample]:
    for n in (0, 1, 2, 5):
        for dtype in FLOATING:
            yield Sample(n, make.tensor(4, 9, dtype=dtype, low=0.2, high=8))
        yield Sample(n, make.tensor(4, 9, dtype=torch.float64, low=-6, high=0))
    yield Sample(1, make.tensor(6, dtype=torch.int64, low=-3, high=9))


def copysign_scalar(make: Maker) -> Iterator[Sample]:
    for dtype in REAL:
        yield Sample(make.tensor(3, 5, dtype=dtype, low=0), -2.0)
    yield Sample(make.tensor(3, 5), -0.0)


def gcd(make: Maker) -> Iterator[Sample]:
    for dtype in INTEGRAL:
        high = 120.0 if dtype != torch.int64 else 1e12
        low = 0.0 if dtype == torch.uint8 else -high
        values = make.tensor(4, 33, dtype=dtype, low=low, high=high)
        yield Sample(values, make.tensor(33, dtype=dtype, low=low, high=high))
    lowest = torch.tensor([-(2**63), 0, 6], dtype=torch.int64)
    yield Sample(lowest, torch.tensor([0, 0, -4]))


def nextafter(make: Maker) -> Iterator[Sample]:
    ends = torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan")])
    for dtype in FLOATING:
        yield Sample(make.tensor(5, 40, dtype=dtype), make.tensor(5, 40, dtype=dtype))
        yield Sample(ends.to(dtype).unsqueeze(1), ends.to(dtype))
    halves = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.float16)
    for end in (0.0, -0.0, float("inf"), -float("inf"), float("nan")):
        yield Sample(halves, torch.tensor(end, dtype=torch.float16).expand(halves.shape).clone())


def zeta_scalar_first(make: Maker) -> Iterator[Sample]:
    yield Sample(3.0, make.tensor(4, 9, low=0.1, high=9))
    yield Sample(2, make.tensor(4, dtype=torch.int32, low=1, high=9))


def zeta_scalar_last(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(4, 9, low=1.1, high=9), 2.5)


def frexp(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        yield Sample(make.tensor(4, 9, dtype=dtype))
    yield Sample(torch.tensor([0.0, -0.0, 1.0, 0.5, 1e-40, 3e38]))
    yield Sample(make.tensor(0))


def exactly(
    eager: Callable[..., torch.Tensor], exact: Callable[..., Any]
) -> Callable[..., torch.Tensor]:
    """Eager, but mpmath in float64: there eager is right in only nine digits."""

    def reference(*args: Any) -> torch.Tensor:
        shaped = eager(*args)
        if shaped.dtype != torch.float64:
            return shaped
        tensors = [torch.as_tensor(a).expand(shaped.shape).flatten().tolist() for a in args]
        values = [float(exact(*numbers)) for numbers in zip(*tensors, strict=True)]
        return torch.tensor(values, dtype=torch.float64).reshape(shaped.shape)

    return reference


def lower_gamma(a: float, x: float) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper_gamma(a: float, x: float) -> Any:
    return mpmath.gammainc(a, x, regularized=True)


# Eager has some functions in these types alone.
WIDE = (torch.float32, torch.float64)
# The functions are computed in double here, in the type itself in eager.
LOOSE = (2e-5, 1e-5)

OPS = [
    OpCases("aten::copysign.Scalar_out", copysign_scalar),
    OpCases("aten::copysign.out", binary(-5, 5, REAL)),
    OpCases("aten::digamma.out", unary(0.2, 20, special=False), tolerance=LOOSE),
    OpCases("aten::erfc.out", unary(-4, 6), tolerance=LOOSE),
    OpCases("aten::erfinv.out", unary(-1, 1), tolerance=LOOSE),
    OpCases("aten::exp2.out", unary(-20, 20)),
    OpCases("aten::frexp.Tensor_out", frexp),
    OpCases("aten::gcd.out", gcd),
    OpCases("aten::hypot.out", hypot),
    OpCases("aten::i0.out", unary(-40, 40), tolerance=LOOSE),
    OpCases("aten::igamma.out", binary(0.01, 40), exactly(torch.igamma, lower_gamma), LOOSE),
    OpCases("aten::igammac.out", binary(0.01, 40), exactly(torch.igammac, upper_gamma), LOOSE),
    OpCases("aten::lgamma.out", unary(0.1, 30), tolerance=LOOSE),
    OpCases("aten::nextafter.out", nextafter),
    OpCases("aten::polygamma.out", polygamma, exactly(torch.polygamma, mpmath.psi), LOOSE),
    OpCases("aten::signbit.out", signbit),
    OpCases(
        "aten::special_erfcx.out",
        unary(-3, 30, dtypes=WIDE + INTEGRAL),
        tolerance=LOOSE,
    ),
    OpCases("aten::special_i0e.out", unary(-60, 60), tolerance=LOOSE),
    OpCases("aten::special_i1.out", unary(-40, 40), tolerance=LOOSE),
    OpCases("aten::special_i1e.out", unary(-60, 60), tolerance=LOOSE),
    OpCases(
        "aten::special_log_ndtr.out",
        unary(-20, 6, dtypes=WIDE + INTEGRAL),
        tolerance=LOOSE,
    ),
    OpCases(
        "aten::special_ndtri.out",
        unary(0, 1, dtypes=WIDE + INTEGRAL),
        tolerance=LOOSE,
    ),
    OpCases("aten::special_zeta.other_scalar_out", zeta_scalar_last, tolerance=LOOSE),
    OpCases("aten::special_zeta.out", binary(1.1, 9, WIDE), tolerance=LOOSE),
    OpCases("aten::special_zeta.self_scalar_out", zeta_scalar_first, tolerance=LOOSE),
]

ERRORS = [
    ErrorCase(
        "aten::polygamma.out",
        lambda make: [-1, make.tensor(3), make.tensor(3)],
        "n is -1, but must not be negative",
    ),
    ErrorCase(
        "aten::gcd.out",
        lambda make: [make.tensor(3), make.tensor(3), make.tensor(3)],
        "self is float32, but must be of integers",
    ),
    ErrorCase(
        "aten::nextafter.out",
        lambda make: [make.tensor(3, dtype=torch.int32) for _ in range(3)],
        "the operands are int32, but must be floating",
    ),
    ErrorCase(
        "aten::frexp.Tensor_out",
        lambda make: [make.tensor(3), make.tensor(3), make.tensor(3, dtype=torch.int64)],
        "exponent int64, but must be floating and int32",
    ),
    ErrorCase(
        "aten::digamma.out",
        lambda make: [make.tensor(3), make.tensor(3, dtype=torch.int32)],
        "int32",
    ),
]
