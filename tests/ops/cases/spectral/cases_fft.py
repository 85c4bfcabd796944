"""Cases of discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...harness import ErrorCase, Maker, OpCases, Sample

C64 = torch.complex64
# Powers of two, the factors that there are passes for, their products, and primes beyond them.
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 25, 26, 31, 46, 60, 77, 97, 100, 128)
# In so many rows that they are worked on side by side.
SIDE_BY_SIDE = (1, 2, 6, 7, 30, 46, 77, 100)
ROWS = 37
LONG = (400, 512, 509, 1000, 1022, 2310, 4096, 4099)
# shape, dims, order of dimensions
MANY: list[tuple[tuple[int, ...], list[int], Any]] = [
    ((4, 6), [0, 1], None),
    ((4, 6), [1, 0], None),
    ((3, 8, 5), [0], None),
    ((3, 8, 5), [-2], None),
    ((3, 8, 5), [2, 0, 1], None),
    ((2, 3, 4, 6), [2, 3], (0, 2, 3, 1)),
    ((2, 3, 4, 6), [1], (0, 2, 3, 1)),
    ((40, 34), [0, 1], None),
]


def complex_to_complex(make: Maker) -> Iterator[Sample]:
    for n in (*LENGTHS, *LONG):
        for forward in (True, False):
            yield Sample(make.tensor(3, n, dtype=C64), [1], 0, forward)
    for n in SIDE_BY_SIDE:
        yield Sample(make.tensor(ROWS, n, dtype=C64), [1], 1, True)
    for shape, dims, order in MANY:
        for mode in (0, 1, 2):
            x = make.tensor(*shape, dtype=C64, order=order)
            yield Sample(x, dims, mode, mode != 1)
    yield Sample(make.tensor(0, 4, dtype=C64), [1], 0, True)
    yield Sample(make.tensor(2, 4, dtype=C64), [], 1, True)
    yield Sample(make.tensor(50, 64, dtype=C64), [1], 1, True)
    # What is not a number stays in its row.
    yield Sample(make.tensor(20, 8, dtype=C64, special=True).nan_to_num(0, 1, 1), [1], 0, True)


def real_to_complex(make: Maker) -> Iterator[Sample]:
    for n in (*LENGTHS, *LONG):
        for onesided in (True, False):
            yield Sample(make.tensor(3, n), [1], 0, onesided)
    for n in SIDE_BY_SIDE:
        yield Sample(make.tensor(ROWS, n), [1], 1, True)
    for shape, dims, order in MANY:
        for mode in (0, 1, 2):
            yield Sample(make.tensor(*shape, order=order), dims, mode, mode != 1)
    yield Sample(make.tensor(0, 4), [1], 0, True)
    yield Sample(make.tensor(50, 64), [1], 2, True)


def complex_to_real(make: Maker) -> Iterator[Sample]:
    for n in (*LENGTHS, *LONG):
        yield Sample(make.tensor(3, n // 2 + 1, dtype=C64), [1], 0, n)
    for n in SIDE_BY_SIDE:
        yield Sample(make.tensor(ROWS, n // 2 + 1, dtype=C64), [1], 1, n)
    for shape, dims, order in MANY:
        for mode in (0, 1, 2):
            last = (shape[dims[-1]] - 1) * 2 + mode % 2
            if last > 0:
                x = make.tensor(*shape, dtype=C64, order=order)
                yield Sample(x, dims, mode, last)
    yield Sample(make.tensor(0, 4, dtype=C64), [1], 0, 6)
    yield Sample(make.tensor(50, 33, dtype=C64), [1], 2, 64)


# Norms by the mode of the operator, for transforms forward and back.
NORMS = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}


# The operators themselves trust their caller: they fail or crash on dims that are not in order,
# and on nothing to transform.
def eager_c2c(x: torch.Tensor, dims: list[int], mode: int, forward: bool) -> torch.Tensor:
    transform = torch.fft.fftn if forward else torch.fft.ifftn
    return transform(x, dim=dims, norm=NORMS[forward][mode]) if dims and x.numel() else x


def eager_r2c(x: torch.Tensor, dims: list[int], mode: int, onesided: bool) -> torch.Tensor:
    if x.numel() == 0:
        return torch.empty(0, x.shape[1] // 2 + 1, dtype=C64)
    transform = torch.fft.rfftn if onesided else torch.fft.fftn
    return transform(x, dim=dims, norm=NORMS[True][mode])


def eager_c2r(x: torch.Tensor, dims: list[int], mode: int, last: int) -> torch.Tensor:
    if x.numel() == 0:
        return torch.empty(0, last)
    sizes = [x.shape[d] for d in dims[:-1]] + [last]
    return torch.fft.irfftn(x, s=sizes, dim=dims, norm=NORMS[False][mode])


# Sums of thousands of terms of up to 5, in float32.
CLOSE = (2e-5, 1e-3)
OPS = [
    OpCases("aten::_fft_c2c.out", complex_to_complex, eager_c2c, tolerance=CLOSE),
    OpCases("aten::_fft_c2r.out", complex_to_real, eager_c2r, tolerance=CLOSE),
    OpCases("aten::_fft_r2c.out", real_to_complex, eager_r2c, tolerance=CLOSE),
]


def r2c(message: str, x: Any, dims: list[int], mode: int = 0) -> ErrorCase:
    out = torch.zeros(4, 9, dtype=C64)
    return ErrorCase("aten::_fft_r2c.out", lambda make: [x, dims, mode, True, out], message)


def c2r(message: str, dims: list[int], last: int) -> ErrorCase:
    def args(make: Maker) -> list[Any]:
        return [make.tensor(4, 5, dtype=C64), dims, 0, last, torch.zeros(4, 20)]

    return ErrorCase("aten::_fft_c2r.out", args, message)


ERRORS = [
    r2c("self is float64, but must be float32", torch.zeros(4, 8).double(), [1]),
    r2c("dim is 2, but a tensor of rank 2 takes dims from -2 to 1", torch.zeros(4, 8), [2]),
    r2c("dim is empty", torch.zeros(4, 8), []),
    r2c("named twice", torch.zeros(4, 8), [1, -1]),
    r2c("normalization is 3, but must be 0", torch.zeros(4, 8), [1], 3),
    r2c(r"along dimension 1 of shape \(4, 0\), whose size is 0", torch.zeros(4, 0), [1]),
    r2c("self has no dimensions", torch.tensor(1.0), [0]),
    c2r("last_dim_size is 7, but a spectrum of size 5 is that of 8 or 9 elements", [1], 7),
    c2r("last_dim_size is -1", [1], -1),
    ErrorCase(
        "aten::_fft_c2c.out",
        lambda make: [make.tensor(4), [0], 0, True, torch.zeros(4, dtype=C64)],
        "self is float32, but must be complex64",
    ),
    ErrorCase(
        "aten::_fft_c2c.out",
        lambda make: [
            make.tensor(1 << 20, dtype=C64),
            *([0], 0, True, torch.zeros(1 << 20, dtype=C64)),
        ],
        "length 1048576 takes .* bytes of scratch memory",
    ),
]
