"""Cases of complex64: arithmetic, and real and imaginary parts.

Those of the operators that real tensors share stand in ``cases_elementwise.py``, with the samples
of :func:`binary` and :func:`unary`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...harness import ErrorCase, Maker, OpCases, Sample

C64 = torch.complex64


def binary(make: Maker, **keywords: Any) -> Iterator[Sample]:
    """Two operands, of which one at least is complex."""
    yield Sample(make.tensor(3, 700, dtype=C64), make.tensor(3, 700, dtype=C64), **keywords)
    yield Sample(make.tensor(2, 3, 4, dtype=C64), make.tensor(3, 1, dtype=C64), **keywords)
    order = (0, 2, 3, 1)
    x = make.tensor(2, 3, 4, 5, dtype=C64, order=order)
    yield Sample(x, make.tensor(2, 3, 4, 5, dtype=C64), out_dim_order=order, **keywords)
    yield Sample(make.tensor(5, dtype=C64), make.tensor(dtype=C64), **keywords)
    yield Sample(make.tensor(dtype=C64), make.tensor(5), **keywords)
    yield Sample(make.tensor(0, 3, dtype=C64), make.tensor(3, dtype=C64), **keywords)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.uint8):
        real = make.tensor(3, 4, dtype=dtype, low=1)
        yield Sample(make.tensor(3, 4, dtype=C64), real, **keywords)
        yield Sample(real, make.tensor(4, dtype=C64), **keywords)


def sums(make: Maker) -> Iterator[Sample]:
    """The same with the factor that add and sub take."""
    yield from binary(make)
    yield from binary(make, alpha=2)


def with_scalar(make: Maker, **keywords: Any) -> Iterator[Sample]:
    """A complex tensor and a real scalar."""
    for scalar in (3, -0.5):
        yield Sample(make.tensor(3, 300, dtype=C64), scalar, **keywords)


def unary(make: Maker) -> Iterator[Sample]:
    """Complex tensors of many shapes."""
    yield Sample(make.tensor(3, 700, dtype=C64))
    yield Sample(make.tensor(dtype=C64))
    yield Sample(make.tensor(0, 2, dtype=C64))
    yield Sample(make.tensor(2, 3, 4, 5, dtype=C64, order=(0, 2, 3, 1)))
    yield Sample(make.tensor(2, 3, 4, 5, dtype=C64, order=(0, 2, 3, 1)), out_dim_order=range(4))
    yield Sample(make.tensor(4, 5, dtype=C64, special=True))


def real_parts(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(3, 700, dtype=C64))
    yield Sample(make.tensor(dtype=C64))
    yield Sample(make.tensor(0, 2, dtype=C64))
    x = make.tensor(2, 3, 4, 5, dtype=C64, order=(0, 2, 3, 1))
    yield Sample(x, out_dim_order=(0, 2, 3, 1, 4))
    yield Sample(x, out_dim_order=range(5))


def pairs(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(3, 700, 2))
    yield Sample(make.tensor(2))
    yield Sample(make.tensor(0, 2))
    yield Sample(make.tensor(2, 3, 4, 5, 2), out_dim_order=(0, 2, 3, 1))


def two_parts(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(3, 700), make.tensor(3, 700))
    yield Sample(make.tensor(3, 1, 4), make.tensor(5, 1))
    yield Sample(make.tensor(), make.tensor())
    yield Sample(make.tensor(0, 3), make.tensor(3))
    x = make.tensor(2, 3, 4, 5, order=(0, 2, 3, 1))
    yield Sample(x, make.tensor(2, 3, 4, 5), out_dim_order=(0, 2, 3, 1))


OPS = [
    OpCases("aten::_conj_physical.out", unary),
    OpCases("aten::complex.out", two_parts),
    OpCases("aten::view_as_complex_copy.out", pairs),
    OpCases("aten::view_as_real_copy.out", real_parts),
]

ERRORS = [
    ErrorCase(
        "aten::_conj_physical.out",
        lambda make: [make.tensor(3), torch.zeros(3)],
        "self is float32, but must be complex64",
    ),
    ErrorCase(
        "aten::complex.out",
        lambda make: [make.tensor(3), make.tensor(3).double(), torch.zeros(3, dtype=C64)],
        "imag is float64, but must be float32",
    ),
    ErrorCase(
        "aten::complex.out",
        lambda make: [make.tensor(3), make.tensor(4), torch.zeros(4, dtype=C64)],
        "cannot be broadcast",
    ),
    ErrorCase(
        "aten::view_as_complex_copy.out",
        lambda make: [make.tensor(4, 3), torch.zeros(4, dtype=C64)],
        r"self has shape \(4, 3\), but its last size must be 2",
    ),
    ErrorCase(
        "aten::view_as_real_copy.out",
        lambda make: [make.tensor(4, dtype=C64), torch.zeros(4, 2).double()],
        "out is float64, but must be float32",
    ),
    ErrorCase(
        "aten::add.out",
        lambda make: [make.tensor(4, dtype=C64), make.tensor(4), 1, torch.zeros(4)],
        "self is complex64",
    ),
    ErrorCase(
        "aten::mul.out",
        lambda make: [
            make.tensor(4, dtype=C64),
            make.tensor(4).to(torch.complex128),
            torch.zeros(4, dtype=C64),
        ],
        "other is complex128",
    ),
]
