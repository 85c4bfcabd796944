"""Cases of the matrix products: mm, bmm, addmm, linear."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...harness import FLOATING, INTEGRAL, ErrorCase, Maker, OpCases, Sample

# Around the tiles (up to 14 rows, 32 columns) and the blocks (384 deep) of the packed product, and
# on both sides of the limits of the paths for few rows.
SIZES = [
    (1, 1, 1),
    (1, 70, 33),
    (2, 37, 400),
    (3, 300, 31),
    (5, 65, 100),
    (6, 129, 64),
    (8, 33, 64),
    (9, 40, 35),
    (13, 31, 17),
    (14, 32, 384),
    (15, 33, 385),
    (29, 100, 770),
    (130, 96, 50),
    (40, 3, 90),
    (60, 1, 45),
]
EMPTY = [(0, 3, 4), (3, 0, 4), (3, 4, 0)]
TRANSPOSED = (1, 0)
# A sum of K products of values up to 1 is off by some K times the rounding of one.
TOLERANCE = (1e-5, 1e-4)


def unit(make: Maker, *shape: int, **options: object) -> torch.Tensor:
    """Values from -1 to 1, so that sums stay small."""
    return make.tensor(*shape, low=-1, high=1, **options)  # type: ignore[arg-type]


def small(make: Maker, *shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Values that suit the dtype: integers are multiplied, too."""
    if dtype.is_floating_point:
        return unit(make, *shape, dtype=dtype)
    return make.tensor(*shape, low=0 if dtype == torch.uint8 else -9, high=9, dtype=dtype)


def mm(make: Maker) -> Iterator[Sample]:
    for m, n, k in SIZES + EMPTY:
        yield Sample(unit(make, m, k), unit(make, k, n))
        yield Sample(unit(make, m, k, order=TRANSPOSED), unit(make, k, n))
        yield Sample(unit(make, m, k), unit(make, k, n, order=TRANSPOSED))
        yield Sample(unit(make, m, k), unit(make, k, n), out_dim_order=TRANSPOSED)
    for dtype in FLOATING + INTEGRAL:
        yield Sample(small(make, 7, 70, dtype=dtype), small(make, 70, 21, dtype=dtype))
    special = unit(make, 20, 40)
    special[3, 5] = float("nan")
    special[4, 6] = float("inf")
    yield Sample(special, unit(make, 40, 20))


def bmm(make: Maker) -> Iterator[Sample]:
    for m, n, k in SIZES + EMPTY:
        yield Sample(unit(make, 3, m, k), unit(make, 3, k, n))
    yield Sample(unit(make, 0, 4, 5), unit(make, 0, 5, 6))
    for order in [(0, 2, 1), (1, 0, 2), (2, 1, 0)]:
        yield Sample(unit(make, 5, 20, 30, order=order), unit(make, 5, 30, 40, order=order))
        yield Sample(unit(make, 5, 20, 30), unit(make, 5, 30, 40), out_dim_order=order)
    for dtype in FLOATING + INTEGRAL:
        yield Sample(small(make, 2, 5, 9, dtype=dtype), small(make, 2, 9, 20, dtype=dtype))


def addmm(make: Maker) -> Iterator[Sample]:
    for m, n, k in SIZES + EMPTY:
        yield Sample(unit(make, n), unit(make, m, k), unit(make, k, n))
        yield Sample(unit(make, m, n), unit(make, m, k), unit(make, k, n), beta=0.5, alpha=-2)
        yield Sample(unit(make, m, 1), unit(make, m, k), unit(make, k, n), alpha=3)
        yield Sample(unit(make), unit(make, m, k), unit(make, k, n, order=TRANSPOSED))
    yield Sample(
        unit(make, 20, 40, order=TRANSPOSED), unit(make, 20, 50), unit(make, 50, 40), beta=2.5
    )
    yield Sample(torch.full((4,), float("nan")), unit(make, 3, 5), unit(make, 5, 4), beta=0)
    for dtype in FLOATING + INTEGRAL:
        matrices = small(make, 6, 10, dtype=dtype), small(make, 10, 18, dtype=dtype)
        yield Sample(small(make, 18, dtype=dtype), *matrices, beta=2, alpha=3)


def linear(make: Maker) -> Iterator[Sample]:
    for m, n, k in SIZES + EMPTY:
        yield Sample(unit(make, m, k), unit(make, n, k), unit(make, n))
        yield Sample(unit(make, m, k), unit(make, n, k))
    yield Sample(unit(make, 2, 3, 4, 50), unit(make, 21, 50), unit(make, 21))
    yield Sample(unit(make, 50), unit(make, 21, 50), unit(make, 21))
    yield Sample(unit(make, 2, 3, 40, order=(1, 0, 2)), unit(make, 21, 40), unit(make, 21))
    yield Sample(unit(make, 2, 3, 40, order=(2, 0, 1)), unit(make, 21, 40), unit(make, 21))
    yield Sample(unit(make, 2, 3, 40), unit(make, 21, 40), out_dim_order=(1, 0, 2))
    yield Sample(unit(make, 2, 3, 40), unit(make, 21, 40), out_dim_order=(2, 1, 0))
    yield Sample(unit(make, 2, 3, 40), unit(make, 40))
    for dtype in FLOATING:
        yield Sample(*(unit(make, *s, dtype=dtype) for s in [(7, 30), (20, 30), (20,)]))


OPS = [
    OpCases("aten::mm.out", mm, tolerance=TOLERANCE),
    OpCases("aten::bmm.out", bmm, tolerance=TOLERANCE),
    OpCases("aten::addmm.out", addmm, tolerance=TOLERANCE),
    OpCases("aten::linear.out", linear, tolerance=TOLERANCE),
]

ERRORS = [
    ErrorCase(
        "aten::mm.out",
        lambda make: [make.tensor(2, 3), make.tensor(4, 5), make.tensor(2, 5)],
        r"self has shape \(2, 3\) and mat2 has \(4, 5\)",
    ),
    ErrorCase(
        "aten::mm.out",
        lambda make: [make.tensor(2, 3), make.tensor(3, 5).int(), make.tensor(2, 5)],
        "mat2 is int32, but out is float32",
    ),
    ErrorCase(
        "aten::mm.out",
        lambda make: [make.tensor(3), make.tensor(3, 5), make.tensor(2, 5)],
        "self has shape .* 2 dimensions",
    ),
    ErrorCase(
        "aten::mm.out",
        lambda make: (
            [torch.ones(2, 2, dtype=torch.bool)] * 2 + [torch.ones(2, 2, dtype=torch.bool)]
        ),
        "self is bool, for which there is no matrix product",
    ),
    ErrorCase(
        "aten::bmm.out",
        lambda make: [make.tensor(2, 2, 3), make.tensor(3, 3, 5), make.tensor(2, 2, 5)],
        "cannot be multiplied",
    ),
    ErrorCase(
        "aten::addmm.out",
        lambda make: [
            make.tensor(4),
            make.tensor(2, 3),
            make.tensor(3, 5),
            1,
            1,
            make.tensor(2, 5),
        ],
        r"self has shape \(4,\), which does not broadcast to the product's \(2, 5\)",
    ),
    ErrorCase(
        "aten::linear.out",
        lambda make: [make.tensor(2, 3), make.tensor(5, 4), None, make.tensor(2, 5)],
        "last sizes must be equal",
    ),
    ErrorCase(
        "aten::linear.out",
        lambda make: [make.tensor(2, 3), make.tensor(5, 3), make.tensor(4), make.tensor(2, 5)],
        "bias has shape .* 5 outputs",
    ),
]
