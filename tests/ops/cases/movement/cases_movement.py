"""Cases of the operators that move elements along fixed patterns: permutations, views, slices,
joins. Those that follow index tensors are in cases_indexing.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...harness import REAL, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)
ANY = (*REAL, torch.bool, torch.complex64, torch.complex128)


def values(make: Maker, *shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Random values of any dtype."""
    if dtype.is_complex:
        part = torch.float32 if dtype == torch.complex64 else torch.float64
        return torch.complex(make.tensor(*shape, dtype=part), make.tensor(*shape, dtype=part))
    return make.tensor(*shape, low=0, high=100, dtype=dtype)


def permute(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(), [])
    yield Sample(make.tensor(5), [-1])
    yield Sample(make.tensor(3, 0, 2), [2, 0, 1])
    for dtype in ANY:
        yield Sample(values(make, 37, 70, dtype=dtype), [1, 0])
        yield Sample(values(make, 2, 5, 3, 7, dtype=dtype), [0, 2, 1, 3])
        yield Sample(values(make, 2, 5, 3, 2, dtype=dtype), [2, 0, 1, 3])
    for dims in ([0, 3, 1, 2], [3, 2, 1, 0], [1, -1, 0, 2]):
        yield Sample(make.tensor(2, 19, 33, 40), dims)
        yield Sample(make.tensor(2, 19, 33, 40, order=CHANNELS_LAST), dims)
        yield Sample(make.tensor(2, 19, 33, 40), dims, out_dim_order=CHANNELS_LAST)
    yield Sample(make.tensor(2, 3, 4, 5, 6, 7), [5, 1, 3, 0, 2, 4])


def transpose(make: Maker) -> Iterator[Sample]:
    for a, b in [(0, 1), (1, 2), (-1, 0), (1, 1)]:
        yield Sample(make.tensor(17, 33, 65), a, b)
    yield Sample(make.tensor(), 0, -1)
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), 1, 3)


def t(make: Maker) -> Iterator[Sample]:
    for shape in [(), (5,), (40, 50), (0, 3)]:
        yield Sample(make.tensor(*shape))


def view(make: Maker) -> Iterator[Sample]:
    for shape, size in [
        ((2, 3, 4), [6, 4]),
        ((2, 3, 4), [-1]),
        ((2, 3, 4), [4, -1, 2]),
        ((1, 1), []),
        ((), [1, 1]),
        ((0, 3), [3, 0, 7]),
    ]:
        yield Sample(make.tensor(*shape), size)
    for dtype in ANY:
        yield Sample(values(make, 4, 6, dtype=dtype), [8, 3])
    # Eager makes these copies in two steps; the rule is row-major order on both sides.
    nhwc = make.tensor(2, 6, 4, 5, order=CHANNELS_LAST)
    yield Sample(nhwc, [2, 3, 8, 5])
    yield Sample(nhwc, [2, 3, 8, 5], out_dim_order=CHANNELS_LAST)
    yield Sample(make.tensor(2, 6, 4, 5), [2, 3, 8, 5], out_dim_order=CHANNELS_LAST)


def unsqueeze(make: Maker) -> Iterator[Sample]:
    for dim in (0, 1, 2, -1, -3):
        yield Sample(make.tensor(3, 4), dim)
    yield Sample(make.tensor(), 0)
    yield Sample(make.tensor(2, 3, 4, order=(2, 0, 1)), 1)


def squeeze_dim(make: Maker) -> Iterator[Sample]:
    for dim in (0, 1, 2, -1):
        yield Sample(make.tensor(3, 1, 4), dim)
    yield Sample(make.tensor(), -1)
    yield Sample(make.tensor(2, 1, 3, 4, order=CHANNELS_LAST), 1)


def squeeze_dims(make: Maker) -> Iterator[Sample]:
    for dims in ([], [0], [0, 2], [-1, 1], [1, 2]):
        yield Sample(make.tensor(1, 3, 1, 4, 1), dims)
    yield Sample(make.tensor(), [0])


def expand(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(3, 1), [3, 4])
    yield Sample(make.tensor(3, 1), [2, -1, 4])
    yield Sample(make.tensor(1, 3), [0, 3])
    yield Sample(make.tensor(), [2, 3])
    yield Sample(make.tensor(1, 5, 1, 6), [4, 5, 7, 6])
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), [-1, -1, -1, -1])
    for dtype in ANY:
        yield Sample(values(make, 1, 7, 1, dtype=dtype), [3, 7, 9])


def repeat(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(3, 4), [2, 3])
    yield Sample(make.tensor(3, 4), [2, 1, 5])
    yield Sample(make.tensor(3, 4), [0, 1])
    yield Sample(make.tensor(), [3, 2])
    yield Sample(make.tensor(), [])
    yield Sample(make.tensor(2, 3, 2, 2, order=CHANNELS_LAST), [1, 2, 3, 1])
    for dtype in ANY:
        yield Sample(values(make, 3, 1, 5, dtype=dtype), [2, 4, 3])


def flip(make: Maker) -> Iterator[Sample]:
    for dims in ([], [0], [1, -1], [0, 1, 2]):
        yield Sample(make.tensor(3, 4, 50), dims)
        yield Sample(make.tensor(3, 4, 50, order=(2, 0, 1)), dims)
    yield Sample(make.tensor(0, 2), [0])
    yield Sample(make.tensor(), [])
    for dtype in ANY:
        yield Sample(values(make, 3, 7, dtype=dtype), [1])


def roll(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(3, 4), [5])
    yield Sample(make.tensor(3, 4), [-5])
    yield Sample(make.tensor(3, 4, 5), [1, -2], [0, 2])
    yield Sample(make.tensor(3, 4, 5), [7, 9], [1, 1])
    yield Sample(make.tensor(0, 4), [1], [0])
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), [7])
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), [1, 2], [1, 3])
    for dtype in ANY:
        yield Sample(values(make, 3, 7, dtype=dtype), [2], [-1])


def diagonal(make: Maker) -> Iterator[Sample]:
    for offset in (0, 1, -2, 9, -9):
        yield Sample(make.tensor(5, 7), offset)
    yield Sample(make.tensor(3, 4, 5), 1, 0, 2)
    yield Sample(make.tensor(3, 4, 5), 0, -1, 1)
    yield Sample(make.tensor(3, 4, 5, order=(1, 2, 0)), -1, 0, 1)


def unfold(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(10), 0, 3, 2)
    yield Sample(make.tensor(4, 9, 3), 1, 4, 1)
    yield Sample(make.tensor(4, 9), -1, 9, 5)
    yield Sample(make.tensor(4, 9), 0, 0, 1)
    yield Sample(make.tensor(), 0, 1, 1)


def as_strided(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(20), [3, 4], [5, 1])
    yield Sample(make.tensor(20), [3, 4], [1, 2], 3)
    yield Sample(make.tensor(4, 5), [2, 2, 2], [0, 7, 1], 2)
    yield Sample(make.tensor(6), [], [], 5)
    yield Sample(make.tensor(6), [0, 3], [1, 1])


def pixel_shuffle(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(2, 12, 3, 5), 2)
    yield Sample(make.tensor(9, 4, 4), 3)
    yield Sample(make.tensor(2, 2, 4, 3, 3), 1)
    yield Sample(make.tensor(1, 8, 3, 5, order=CHANNELS_LAST), 2)
    for dtype in ANY:
        yield Sample(values(make, 8, 3, 2, dtype=dtype), 2)


def pixel_unshuffle(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(2, 3, 6, 10), 2)
    yield Sample(make.tensor(1, 9, 6), 3)
    yield Sample(make.tensor(2, 2, 4, 8, 6), 2)
    yield Sample(make.tensor(1, 2, 6, 4, order=CHANNELS_LAST), 2)


def slice_(make: Maker) -> Iterator[Sample]:
    x = make.tensor(6, 9, 5)
    for dim, start, end, step in [
        (0, None, None, 1),
        (1, 2, 7, 1),
        (1, -4, -1, 2),
        (2, 1, 2**63 - 1, 3),
        (-2, 5, 2, 1),
        (0, -100, 100, 4),
        (0, 100, 200, 1),
        (1, 0, 9, 2**62),
    ]:
        yield Sample(x, dim, start, end, step)
    yield Sample(make.tensor(2, 6, 4, 5, order=CHANNELS_LAST), 1, 1, 5, 2)
    yield Sample(make.tensor(0, 3), 1, 1, 2)
    for dtype in ANY:
        yield Sample(values(make, 5, 9, dtype=dtype), 1, 1, 8, 2)
        yield Sample(values(make, 5, 9, dtype=dtype), 1, 3, 5)


def select(make: Maker) -> Iterator[Sample]:
    for dim, index in [(0, 0), (1, -1), (-1, 2), (2, -5)]:
        yield Sample(make.tensor(3, 4, 5), dim, index)
    yield Sample(make.tensor(4), 0, 3)
    yield Sample(make.tensor(2, 6, 4, 5, order=CHANNELS_LAST), 1, 4)
    yield Sample(make.tensor(3, 0, 2), 0, 1)


def narrow(make: Maker) -> Iterator[Sample]:
    for dim, start, length in [(0, 1, 2), (1, 0, 4), (-1, -3, 2), (2, 5, 0)]:
        yield Sample(make.tensor(3, 4, 5), dim, start, length)


def slice_scatter(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(4, 9), make.tensor(4, 3), 1, 2, 5)
    yield Sample(make.tensor(4, 9), make.tensor(2, 9), 0, None, None, 2)
    yield Sample(make.tensor(4, 9), make.tensor(4, 0), 1, 5, 5)
    yield Sample(make.tensor(4, 9), make.tensor(4, 2, order=(1, 0)), -1, -2, None)


def select_scatter(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(4, 9), make.tensor(4), 1, 2)
    yield Sample(make.tensor(4, 9), make.tensor(9), 0, -1)
    yield Sample(make.tensor(2, 3, 4), make.tensor(2, 4, order=(1, 0)), 1, 1)


def split_with_sizes(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(4, 9), [2, 3, 4], 1)
    yield Sample(make.tensor(4, 9), [0, 4], -2)


def split(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(4, 9), 4, 1)
    yield Sample(make.tensor(4, 9), 2)
    yield Sample(make.tensor(4, 9), 50, -1)
    yield Sample(make.tensor(0, 9), 3, 0)


def unbind(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(4, 3))
    yield Sample(make.tensor(4, 3, 2), -1)


def cat(make: Maker) -> Iterator[Sample]:
    yield Sample([make.tensor(2, 3), make.tensor(2, 5), make.tensor(2, 0)], 1)
    yield Sample([make.tensor(2, 3), make.tensor(0), make.tensor(4, 3)], -2)
    yield Sample([make.tensor(3)])
    yield Sample([make.tensor(0), make.tensor(0)])
    nhwc = [make.tensor(2, c, 4, 5, order=CHANNELS_LAST) for c in (3, 2)]
    yield Sample(nhwc, 1)
    yield Sample([nhwc[0], make.tensor(2, 2, 4, 5)], 1, out_dim_order=CHANNELS_LAST)
    for dtype in ANY:
        yield Sample([values(make, 2, n, 3, dtype=dtype) for n in (1, 4, 2)], 1)
    yield Sample([make.tensor(2, 300, dtype=torch.int32), make.tensor(2, 300)], 0)
    yield Sample([make.tensor(2, 3, dtype=torch.bool), make.tensor(2, 3, dtype=torch.int64)], 1)
    yield Sample([make.tensor(9, dtype=torch.bfloat16), make.tensor(9, dtype=torch.float16)])
    # Enough for several threads: two large tensors, and many small ones.
    yield Sample([make.tensor(150, 300, dtype=torch.int32), make.tensor(150, 700)], 1)
    small = [make.tensor(0), *(make.tensor(7, 40 + 3 * (k % 5), 9) for k in range(24))]
    yield Sample(small, 1)


def stack(make: Maker) -> Iterator[Sample]:
    for dim in (0, 1, 2, -1):
        yield Sample([make.tensor(3, 4) for _ in range(3)], dim)
    yield Sample([make.tensor(), make.tensor()])
    yield Sample([make.tensor(3, 4), make.tensor(3, 4, order=(1, 0))], 1)
    for dim in (0, 1, 2):  # enough for several threads
        yield Sample([make.tensor(210, 220), make.tensor(210, 220, order=(1, 0))], dim)
        yield Sample([make.tensor(30, 50) for _ in range(50)], dim)


def pad(make: Maker) -> Iterator[Sample]:
    for amounts, value in [
        ([1, 2], 0),
        ([1, 2, 3, 0], 1.5),
        ([-1, 2, 0, -2], -3),
        ([-2, -1], 0),
        ([0, 0, 0, 0], 7),
        ([], 7),
        ([1, 1, 1, 1, 1, 1], float("inf")),
    ]:
        yield Sample(make.tensor(3, 4, 5), amounts, value)
    yield Sample(make.tensor(0, 2), [1, 1, 1, 1], 2)
    yield Sample(make.tensor(1, 3, 4, 5, order=CHANNELS_LAST), [1, 1, 2, 2], 0)
    for dtype in (*REAL, torch.bool):
        yield Sample(values(make, 3, 4, dtype=dtype), [2, 1], 1)


def whole(make: Maker) -> Iterator[Sample]:
    for dtype in ANY:
        yield Sample(make.tensor(3, 5).to(dtype))
    yield Sample(make.tensor(0, 3))
    yield Sample(make.tensor(2, 3, 4, 5, order=(0, 2, 3, 1)))


OPS = [
    *(OpCases(f"et_copy::_{way}_copy.out", whole, torch.clone) for way in ("d2h", "h2d")),
    OpCases("aten::permute_copy.out", permute),
    OpCases("aten::transpose_copy.int_out", transpose),
    OpCases("aten::t_copy.out", t),
    OpCases(
        "aten::view_copy.out", view, reference=lambda x, size: x.contiguous().view(size).clone()
    ),
    OpCases("aten::unsqueeze_copy.out", unsqueeze),
    OpCases("aten::squeeze_copy.dim_out", squeeze_dim),
    OpCases("aten::squeeze_copy.dims_out", squeeze_dims),
    OpCases("aten::expand_copy.out", expand),
    OpCases("aten::repeat.out", repeat),
    OpCases("aten::flip.out", flip),
    OpCases("aten::roll.out", roll),
    OpCases("aten::diagonal_copy.out", diagonal),
    OpCases("aten::unfold_copy.out", unfold),
    OpCases("aten::as_strided_copy.out", as_strided),
    OpCases("aten::pixel_shuffle.out", pixel_shuffle),
    OpCases("aten::pixel_unshuffle.out", pixel_unshuffle),
    OpCases("aten::slice_copy.Tensor_out", slice_),
    OpCases("aten::select_copy.int_out", select),
    OpCases("aten::narrow_copy.out", narrow),
    OpCases("aten::slice_scatter.out", slice_scatter),
    OpCases("aten::select_scatter.out", select_scatter),
    OpCases("aten::split_with_sizes_copy.out", split_with_sizes),
    OpCases("aten::split_copy.Tensor_out", split),
    OpCases("aten::unbind_copy.int_out", unbind),
    OpCases("aten::cat.out", cat),
    OpCases("aten::stack.out", stack),
    OpCases("aten::constant_pad_nd.out", pad),
]


def error(op: str, message: str, *args: Any) -> ErrorCase:
    """A failing call whose tensors are all ones of the given shapes (tuples)."""

    def build(make: Maker) -> list[Any]:
        def one(arg: Any) -> Any:
            if isinstance(arg, tuple):
                return torch.ones(arg)
            if isinstance(arg, list):
                return [one(item) for item in arg]
            return arg

        return [one(arg) for arg in args]

    return ErrorCase(op, build, message)


ERRORS = [
    error("aten::permute_copy.out", "dims has 1 entries, but self has 2", (2, 3), [0], (2, 3)),
    error("aten::permute_copy.out", "dim 1 is named twice", (2, 3), [1, -1], (2, 3)),
    error("aten::permute_copy.out", "dim is 2,", (2, 3), [0, 2], (2, 3)),
    error("aten::transpose_copy.int_out", "dim is -3,", (2, 3), 0, -3, (2, 3)),
    error("aten::t_copy.out", "at most 2 dimensions", (2, 3, 4), (2, 3, 4)),
    error("aten::view_copy.out", "size does not fit self, which has 6", (2, 3), [4, -1], (4, 1)),
    error("aten::view_copy.out", "size does not fit self", (2, 3), [2**31, 2**31], (4, 1)),
    error("aten::view_copy.out", "rank of", (2, 3), [6], (2, 3)),
    error("aten::unsqueeze_copy.out", "dim is 3,", (2, 3), 3, (2, 3, 1)),
    error("aten::expand_copy.out", "size 3 cannot expand to 4", (2, 3), [2, 4], False, (2, 4)),
    error("aten::expand_copy.out", "size has 1 entries", (2, 3), [3], False, (3,)),
    error("aten::repeat.out", r"repeats\[1\] is -1", (2, 3), [1, -1], (2, 3)),
    error("aten::flip.out", "named twice", (2, 3), [1, 1], (2, 3)),
    error("aten::roll.out", "shifts has 1 entries, but dims has 2", (2, 3), [1], [0, 1], (2, 3)),
    error("aten::diagonal_copy.out", "must differ", (2, 3), 0, 1, -1, (2,)),
    error("aten::unfold_copy.out", "size is 5 and step is 1", (4,), 0, 5, 1, (1, 4)),
    error("aten::as_strided_copy.out", "reach outside", (6,), [2, 4], [3, 1], None, (2, 4)),
    error("aten::as_strided_copy.out", "out of range", (6,), [2], [-1], 3, (2,)),
    error("aten::pixel_shuffle.out", "6 channels", (6, 2, 2), 2, (1, 4, 4)),
    error("aten::pixel_unshuffle.out", "does not divide", (1, 3, 4), 2, (4, 1, 2)),
    error("aten::slice_copy.Tensor_out", "step is 0", (4,), 0, None, None, 0, (4,)),
    error("aten::slice_copy.Tensor_out", "self has no dimensions", (), 0, None, None, 1, ()),
    error(
        "aten::select_copy.int_out", "index is 3, but dimension 1 has size 3", (2, 3), 1, 3, (2,)
    ),
    error("aten::narrow_copy.out", "start is 2 and length is 2", (2, 3), 1, 2, 2, (2, 2)),
    error("aten::slice_scatter.out", "src has shape", (4,), (3,), 0, 0, 2, 1, (4,)),
    error("aten::split_copy.Tensor_out", "3 parts, but out has 2", (5,), 2, 0, [(2,), (2,)]),
    error("aten::split_with_sizes_copy.out", "add up to 5", (5,), [2, 2], 0, [(2,), (2,)]),
    error("aten::unbind_copy.int_out", "2 parts, but out has 1", (2, 3), 0, [(3,)]),
    error("aten::cat.out", "tensors is empty", [], 0, (2,)),
    error("aten::cat.out", r"tensors\[1\] has shape \(3, 2\)", [(2, 3), (3, 2)], 0, (5, 3)),
    error("aten::stack.out", r"tensors\[1\] has shape \(3,\)", [(2,), (3,)], 0, (2, 2)),
    error("aten::constant_pad_nd.out", "leaves no valid size", (3,), [-2, -2], 0, (3,)),
    error("aten::constant_pad_nd.out", "pad has 4 entries", (3,), [1, 1, 1, 1], 0, (5,)),
]
