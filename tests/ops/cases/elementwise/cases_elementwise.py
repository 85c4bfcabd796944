"""Cases of the elementwise operators: unary, binary, comparisons, selection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch

from ...harness import FLOATING, INTEGRAL, REAL, ErrorCase, Maker, OpCases, Sample
from . import cases_complex

Samples = Callable[[Maker], Iterator[Sample]]
CHANNELS_LAST = (0, 2, 3, 1)
# Below and above one chunk of 512, and not a multiple of a vector.
FLAT_SIZES = (1, 7, 511, 513, 1500)


# --- one tensor ---------------------------------------------------------------------------------


def unary(
    low: float = -5.0,
    high: float = 5.0,
    dtypes: tuple[torch.dtype, ...] = REAL,
    *extra: tuple[Any, ...],
    special: bool = True,
) -> Samples:
    """Shapes, orders, dtypes and special values; each of ``extra`` once more with arguments."""

    def samples(make: Maker) -> Iterator[Sample]:
        for args in extra or ((),):
            for size in FLAT_SIZES:
                yield Sample(make.tensor(size, low=low, high=high), *args)
            yield Sample(make.tensor(low=low, high=high), *args)
            yield Sample(make.tensor(0, 3), *args)
            four = make.tensor(2, 3, 4, 5, low=low, high=high)
            yield Sample(four, *args, out_dim_order=CHANNELS_LAST)
            yield Sample(make.tensor(2, 3, 4, 5, low=low, high=high, order=CHANNELS_LAST), *args)
            yield Sample(
                make.tensor(5, 1, 300, low=low, high=high, order=(2, 0, 1)),
                *args,
                out_dim_order=(0, 1, 2),
            )
            for dtype in dtypes:
                bottom = max(low, 0) if dtype == torch.uint8 else low
                yield Sample(make.tensor(40, 30, low=bottom, high=high, dtype=dtype), *args)
            if special:
                for dtype in (torch.float32, torch.float64):
                    yield Sample(
                        make.tensor(700, low=low, high=high, dtype=dtype, special=True), *args
                    )

    return samples


def with_bool(samples: Samples) -> Samples:
    """The same and a bool tensor."""

    def both(make: Maker) -> Iterator[Sample]:
        yield from samples(make)
        yield Sample(make.tensor(30, 20, dtype=torch.bool))

    return both


def bitwise_not(make: Maker) -> Iterator[Sample]:
    for dtype in (*INTEGRAL, torch.bool):
        yield Sample(make.tensor(40, 30, low=-90, high=90, dtype=dtype))
    yield Sample(make.tensor(0, dtype=torch.int8))


def both(*parts: Samples) -> Samples:
    """The samples of all parts."""

    def samples(make: Maker) -> Iterator[Sample]:
        for part in parts:
            yield from part(make)

    return samples


# name: (lowest, highest value, relative tolerance for float32)
FLOAT_UNARY = {
    "acos": (-1, 1, 1e-6),
    "acosh": (1, 80, 1e-6),
    "asin": (-1, 1, 1e-6),
    "asinh": (-90, 90, 1e-6),
    "atan": (-30, 30, 1e-6),
    "atanh": (-1, 1, 1e-6),
    "cos": (-400, 400, 1e-6),
    "cosh": (-88, 88, 1e-6),
    "erf": (-5, 5, 1e-6),
    "exp": (-104, 89, 1e-6),
    "expm1": (-20, 88, 1e-6),
    "log": (0, 900, 1e-6),
    "log10": (0, 900, 1e-6),
    "log1p": (-1, 50, 1e-6),
    "log2": (0, 900, 1e-6),
    "reciprocal": (-9, 9, 1e-6),
    "rsqrt": (0, 90, 1e-6),
    "sigmoid": (-90, 90, 1e-6),
    "sin": (-400, 400, 1e-6),
    "sinh": (-88, 88, 1e-6),
    "sqrt": (0, 900, 1e-6),
    "tan": (-40, 40, 2e-6),
    "tanh": (-12, 12, 1e-6),
}


def float_samples(name: str, low: float, high: float) -> Samples:
    """What an operator on floats is tried with; many turns for sin and the like."""
    common = with_bool(unary(low, high))
    if name not in ("sin", "cos", "tan"):
        return common

    def samples(make: Maker) -> Iterator[Sample]:
        yield from common(make)
        for bound in (1e5, 3.9e8, 1e12, 1e38):
            yield Sample(make.tensor(600, low=-bound, high=bound))

    return samples


UNARY = [
    OpCases(f"aten::{name}.out", float_samples(name, low, high), tolerance=(relative, 1e-37))
    for name, (low, high, relative) in FLOAT_UNARY.items()
]
UNARY += [
    OpCases("aten::abs.out", both(unary(), cases_complex.unary)),
    OpCases("aten::bitwise_not.out", bitwise_not),
    OpCases("aten::ceil.out", unary(-9, 9)),
    OpCases("aten::clamp.out", unary(-9, 9, REAL, (-2, 3), (None, 1), (0.5, None), (4, -4))),
    OpCases("aten::elu.out", unary(-9, 9, FLOATING, (), (0.5, 2.0, 1.5)), tolerance=(1e-6, 1e-37)),
    OpCases("aten::floor.out", unary(-9, 9)),
    OpCases(
        "aten::gelu.out",
        lambda make: (
            Sample(s.args[0], approximate=mode)
            for mode in ("none", "tanh")
            for s in unary(-6, 6, FLOATING, special=False)(make)
        ),
        tolerance=(2e-6, 1e-6),
    ),
    OpCases("aten::hardtanh.out", unary(-9, 9, FLOATING, (), (-2, 6), (0.0, 6.0))),
    OpCases("aten::isinf.out", with_bool(unary())),
    OpCases("aten::isnan.out", with_bool(unary())),
    OpCases("aten::leaky_relu.out", unary(-9, 9, FLOATING, (), (0.2,))),
    OpCases("aten::logical_not.out", with_bool(unary(-1, 1))),
    OpCases("aten::logit.out", unary(0, 1, FLOATING, (), (0.1,)), tolerance=(2e-6, 1e-6)),
    OpCases("aten::neg.out", both(unary(), cases_complex.unary)),
    OpCases("aten::relu.out", unary()),
    OpCases("aten::round.out", unary(-9, 9)),
    OpCases("aten::sign.out", with_bool(unary())),
    OpCases("aten::trunc.out", unary(-9, 9)),
]

# --- two tensors --------------------------------------------------------------------------------

BROADCASTS = [
    ((7,), (7,)),
    ((3, 4), (4,)),
    ((4,), (3, 4)),
    ((3, 1), (1, 5)),
    ((2, 3, 4), ()),
    ((), ()),
    ((), (5,)),
    ((1, 600), (3, 600)),
    ((600, 1), (600, 3)),
    ((2, 1, 4, 1), (3, 1, 5)),
    ((0, 3), (3,)),
    ((1,), (0,)),
    ((40, 1, 50), (1, 30, 50)),
]


def binary(
    dtypes: tuple[torch.dtype, ...] = REAL,
    low: float = -5.0,
    high: float = 5.0,
    *extra: dict[str, Any],
    divisor: bool = False,
    special: bool = True,
) -> Samples:
    """Broadcasting, orders, mixed dtypes, special values; ``divisor``: no zero on the right."""

    def other(make: Maker, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        value = make.tensor(*shape, dtype=dtype, low=low, high=high)
        return value.where(value != 0, torch.ones((), dtype=dtype)) if divisor else value

    def samples(make: Maker) -> Iterator[Sample]:
        for kwargs in extra or ({},):
            for a, b in BROADCASTS:
                yield Sample(make.tensor(*a, low=low, high=high), other(make, *b), **kwargs)
            cl = make.tensor(2, 3, 4, 5, order=CHANNELS_LAST)
            yield Sample(cl, other(make, 2, 3, 4, 5), **kwargs)
            yield Sample(cl, other(make, 3, 1, 1), **kwargs, out_dim_order=CHANNELS_LAST)
            yield Sample(cl, other(make, 5), **kwargs, out_dim_order=(0, 1, 2, 3))
            for left, right in product(dtypes, dtypes):
                a = make.tensor(20, 31, low=low, high=high, dtype=left)
                yield Sample(a, other(make, 20, 31, dtype=right), **kwargs)
            for left, right in product(dtypes, dtypes):
                a = make.tensor(33, low=low, high=high, dtype=left)
                yield Sample(a, other(make, dtype=right), **kwargs)
            # With a factor, what overflows depends on whether the processor fuses the two steps.
            if special and torch.float32 in dtypes and "alpha" not in kwargs:
                a = make.tensor(9, 1, special=True)
                yield Sample(a, make.tensor(1, 9, special=True), **kwargs)

    return samples


def scalar(
    dtypes: tuple[torch.dtype, ...],
    scalars: tuple[Any, ...],
    low: float = -5.0,
    high: float = 5.0,
    **kwargs: Any,
) -> Samples:
    """A tensor and a Python scalar."""

    def samples(make: Maker) -> Iterator[Sample]:
        for dtype, value in product(dtypes, scalars):
            for shape in ((600,), (), (2, 0), (3, 5)):
                yield Sample(make.tensor(*shape, low=low, high=high, dtype=dtype), value, **kwargs)

    return samples


def no_float_alpha(samples: Samples) -> Samples:
    """Leaves out what eager refuses."""

    def allowed(make: Maker) -> Iterator[Sample]:
        for sample in samples(make):
            if (
                not any(isinstance(v, float) for v in sample.kwargs.values())
                or torch.result_type(*sample.args).is_floating_point
            ):
                yield sample

    return allowed


ALL = (*REAL, torch.bool)
# Eager rounds float16 quotients before it rounds them down, which is off by one here and there.
NO_HALF = (torch.float32, torch.float64, *INTEGRAL)
SUM = no_float_alpha(binary(REAL, -5, 5, {}, {"alpha": 2}, {"alpha": -0.5}))
SUM_SCALAR = no_float_alpha(
    both(scalar(REAL, (2, -1.5)), scalar(REAL, (3, 0.25), alpha=2), scalar(REAL, (2,), alpha=1.5))
)
BOOL_PAIR: Samples = lambda make: iter(  # noqa: E731
    [Sample(make.tensor(600, dtype=torch.bool), make.tensor(600, dtype=torch.bool))]
)

BINARY = [
    OpCases("aten::add.out", both(SUM, BOOL_PAIR, cases_complex.sums)),
    OpCases("aten::add.Scalar_out", both(SUM_SCALAR, cases_complex.with_scalar)),
    OpCases("aten::sub.out", both(SUM, cases_complex.sums)),
    OpCases("aten::sub.Scalar_out", both(SUM_SCALAR, cases_complex.with_scalar)),
    OpCases("aten::rsub.Scalar_out", both(SUM_SCALAR, cases_complex.with_scalar)),
    OpCases("aten::mul.out", both(binary(ALL), cases_complex.binary)),
    OpCases("aten::mul.Scalar_out", both(scalar(ALL, (2, -1.5, True)), cases_complex.with_scalar)),
    OpCases("aten::div.out", both(binary(ALL), cases_complex.binary)),
    OpCases(
        "aten::div.Scalar_out", both(scalar(ALL, (2, -1.5, 0, True)), cases_complex.with_scalar)
    ),
    OpCases(
        "aten::div.out_mode",
        binary(
            NO_HALF,
            -9,
            9,
            {"rounding_mode": None},
            {"rounding_mode": "trunc"},
            {"rounding_mode": "floor"},
            divisor=True,
        ),
    ),
    OpCases(
        "aten::div.Scalar_mode_out",
        both(
            scalar(NO_HALF, (2, -1.5), -9, 9, rounding_mode="floor"),
            scalar(NO_HALF, (2, -1.5), -9, 9, rounding_mode="trunc"),
            scalar(NO_HALF, (2, -1.5), -9, 9, rounding_mode=None),
        ),
    ),
    OpCases("aten::floor_divide.out", binary(NO_HALF, -9, 9, divisor=True)),
    OpCases("aten::fmod.Tensor_out", binary(NO_HALF, -9, 9, divisor=True)),
    OpCases("aten::fmod.Scalar_out", scalar(NO_HALF, (2, -1.5), -9, 9)),
    OpCases("aten::remainder.Tensor_out", binary(NO_HALF, -9, 9, divisor=True)),
    OpCases("aten::remainder.Scalar_out", scalar(NO_HALF, (2, -1.5), -9, 9)),
    OpCases("aten::pow.Tensor_Tensor_out", both(binary(FLOATING), binary(INTEGRAL, 0, 5))),
    OpCases(
        "aten::pow.Scalar_out",
        lambda make: (
            Sample(base, make.tensor(40, 5, dtype=dtype, low=0, high=6))
            for base in (2, 0.5, -3, 0, 1, 1.0)
            for dtype in REAL
        ),
    ),
    OpCases(
        "aten::pow.Tensor_Scalar_out",
        both(
            scalar(REAL, (0, 1, 2, 3, 2.5), 0, 5),
            scalar(FLOATING, (2, 0.5, -0.5, -1, -2, 3, -0.25), 0.01, 9),
            scalar(FLOATING, (2, 3, -1, -3, 0.5), -9, 9),
        ),
        tolerance=(2e-6, 1e-30),
    ),
    OpCases("aten::atan2.out", binary(REAL), tolerance=(1e-6, 1e-37)),
    OpCases("aten::maximum.out", binary(ALL)),
    OpCases("aten::minimum.out", binary(ALL)),
]

# --- comparisons, logic, bits, selection --------------------------------------------------------

COMPARE = [
    OpCases(f"aten::{name}.Tensor_out", binary(ALL, -3, 3))
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
]
COMPARE += [
    OpCases(f"aten::{name}.Scalar_out", scalar(ALL, (2, 0, 1.5, True), -3, 3))
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
]
COMPARE += [
    OpCases(f"aten::logical_{name}.out", binary(ALL, -1, 1)) for name in ("and", "or", "xor")
]


def bits_binary(make: Maker) -> Iterator[Sample]:
    for left, right in product((*INTEGRAL, torch.bool), repeat=2):
        yield Sample(
            make.tensor(20, 31, low=-90, high=90, dtype=left),
            make.tensor(31, low=-90, high=90, dtype=right),
        )


def shifts(make: Maker) -> Iterator[Sample]:
    for dtype in INTEGRAL:
        for amounts in ((0, 8), (-3, 70)):
            low, high = amounts if dtype != torch.uint8 else (0, 70)
            yield Sample(
                make.tensor(20, 31, low=-90, high=90, dtype=dtype),
                make.tensor(31, low=low, high=high, dtype=dtype),
            )


for name in ("and", "or", "xor"):
    COMPARE += [
        OpCases(f"aten::bitwise_{name}.Tensor_out", bits_binary),
        OpCases(
            f"aten::bitwise_{name}.Scalar_out", scalar((*INTEGRAL, torch.bool), (5, 1), -90, 90)
        ),
    ]
for name in ("left", "right"):
    COMPARE += [
        OpCases(f"aten::bitwise_{name}_shift.Tensor_out", shifts),
        OpCases(f"aten::bitwise_{name}_shift.Tensor_Scalar_out", scalar(INTEGRAL, (0, 3), -90, 90)),
    ]


def where(make: Maker) -> Iterator[Sample]:
    for left, right in product(ALL, ALL):
        yield Sample(
            make.tensor(20, 31, dtype=torch.bool),
            make.tensor(20, 31, dtype=left),
            make.tensor(20, 31, dtype=right),
        )
    for c, a, b in [
        ((3, 1), (4,), ()),
        ((), (2, 3), (3,)),
        ((2, 2), (0, 1, 1), (2,)),
        ((), (), ()),
    ]:
        yield Sample(make.tensor(*c, dtype=torch.bool), make.tensor(*a), make.tensor(*b))
    cl = make.tensor(2, 3, 4, 5, order=CHANNELS_LAST, special=True)
    yield Sample(make.tensor(2, 3, 4, 5, dtype=torch.bool), cl, make.tensor(3, 1, 1))


def masked_fill(make: Maker) -> Iterator[Sample]:
    for dtype in ALL:
        value = {torch.bool: True}.get(dtype, -1e30 if dtype in FLOATING[:2] else 3)
        yield Sample(make.tensor(20, 31, dtype=dtype), make.tensor(31, dtype=torch.bool), value)
    yield Sample(make.tensor(4, 5), make.tensor(3, 1, 1, dtype=torch.bool), float("-inf"))
    yield Sample(make.tensor(0, 5), make.tensor(5, dtype=torch.bool), 1)


def clamp_tensor(make: Maker) -> Iterator[Sample]:
    for dtype in REAL:
        x = make.tensor(20, 31, low=-9, high=9, dtype=dtype)
        yield Sample(
            x, make.tensor(31, low=-4, high=0, dtype=dtype), make.tensor(20, 1, low=0, high=4)
        )
        yield Sample(x, None, make.tensor(1, dtype=dtype))
        yield Sample(x, make.tensor(dtype=dtype), None)
    odd = make.tensor(9, 1, 1, special=True)
    yield Sample(odd, make.tensor(9, 1, special=True), make.tensor(9, special=True))


COMPARE += [
    OpCases("aten::where.self_out", where),
    OpCases("aten::masked_fill.Scalar_out", masked_fill),
    OpCases("aten::clamp.Tensor_out", clamp_tensor),
]

OPS = UNARY + BINARY + COMPARE

ERRORS = [
    ErrorCase(
        "aten::add.out",
        lambda make: [make.tensor(2, 3), make.tensor(4), 1, make.tensor(2, 3)],
        r"\(2, 3\).*\(4,\).*broadcast",
    ),
    ErrorCase(
        "aten::add.out",
        lambda make: [make.tensor(2, 3), make.tensor(3), 1, make.tensor(2, 2)],
        r"\(2, 3\).*room for 4",
    ),
    ErrorCase(
        "aten::add.out",
        lambda make: [make.tensor(2), make.tensor(2), 1, make.integers(2, low=0, high=9)],
        "float32.*int64",
    ),
    ErrorCase(
        "aten::add.out",
        lambda make: [*[make.integers(2, low=0, high=9)] * 2, 0.5, make.integers(2, low=0, high=9)],
        "alpha is 0.5",
    ),
    ErrorCase(
        "aten::add.out",
        lambda make: [make.tensor(2).to(torch.complex64), make.tensor(2), 1, make.tensor(2)],
        "self is complex64",
    ),
    ErrorCase("aten::add.out", lambda make: [3, make.tensor(2), 1, make.tensor(2)], "argument 0"),
    ErrorCase(
        "aten::floor_divide.out",
        lambda make: [*[torch.tensor([1, 0])] * 2, torch.zeros(2, dtype=torch.int64)],
        "divided by zero",
    ),
    ErrorCase(
        "aten::pow.Tensor_Scalar_out",
        lambda make: [torch.tensor([2]), -1, torch.tensor([2])],
        "negative power",
    ),
    ErrorCase("aten::gelu.out", lambda make: [make.tensor(2), "fast", make.tensor(2)], "'fast'"),
    ErrorCase(
        "aten::where.self_out",
        lambda make: [make.tensor(2), make.tensor(2), make.tensor(2), make.tensor(2)],
        "condition is float32",
    ),
]
