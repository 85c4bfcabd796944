"""Cases of padding with a tensor's own elements, and of the gated linear unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...harness import FLOATING, ErrorCase, Maker, OpCases, Sample

# By the number of padded dimensions: amounts, and orders of dimensions (outermost first).
PADDINGS: dict[int, list[list[int]]] = {
    1: [[1, 2], [0, 0], [4, 0], [-1, 3], [-2, -1]],
    2: [[1, 2, 2, 1], [4, 3, 0, 0], [-1, 2, 1, -1], [0, 0, 2, 2]],
    3: [[1, 2, 2, 1, 1, 0], [0, 1, -1, 2, 1, 1], [0, 0, 0, 0, 2, 1]],
}
ORDERS: dict[int, list[tuple[int, ...]]] = {
    1: [(0, 2, 1), (2, 0, 1)],
    2: [(0, 2, 3, 1), (3, 1, 0, 2)],
    3: [(0, 2, 3, 4, 1)],
}
SIZES = (3, 4, 5)  # of depth, height and width
LARGE = {1: 1600, 2: 40, 3: 10}  # times these sizes: more than one block of work


def pads(spatial: int) -> Callable[[Maker], Iterator[Sample]]:
    """All paddings of tensors with and without a batch, in several orders and types."""

    def samples(make: Maker) -> Iterator[Sample]:
        size = SIZES[-spatial:]
        for padding in PADDINGS[spatial]:
            yield Sample(make.tensor(3, *size), padding)
            yield Sample(make.tensor(2, 3, *size), padding)
            yield Sample(make.tensor(0, 3, *size), padding)
            yield Sample(make.tensor(2, 3, *[LARGE[spatial] * s for s in size]), padding)
            for order in ORDERS[spatial]:
                x = make.tensor(2, 3, *size, order=order)
                yield Sample(x, padding, out_dim_order=order)
                yield Sample(x, padding, out_dim_order=tuple(range(spatial + 2)))
                yield Sample(make.tensor(2, 3, *size), padding, out_dim_order=order)
        for dtype in (*FLOATING, torch.int8, torch.int64):
            yield Sample(make.tensor(2, 3, *size, dtype=dtype), PADDINGS[spatial][0])

    return samples


def replication_pads(spatial: int) -> Callable[[Maker], Iterator[Sample]]:
    """The same, and amounts that reflection does not take."""

    def samples(make: Maker) -> Iterator[Sample]:
        yield from pads(spatial)(make)
        yield Sample(make.tensor(2, *[1] * spatial), [7] * (2 * spatial))

    return samples


def glu(make: Maker) -> Iterator[Sample]:
    for shape in ((6,), (2, 8), (4, 6, 2), (2, 4, 6, 8), (2, 1300), (0, 4), (3, 0)):
        for dim in range(-len(shape), len(shape)):
            if shape[dim] % 2 == 0:
                yield Sample(make.tensor(*shape), dim)
    for dim in (0, 1, 2, 3):
        x = make.tensor(2, 4, 6, 8, order=(0, 2, 3, 1))
        yield Sample(x, dim, out_dim_order=(0, 2, 3, 1))
        yield Sample(x, dim, out_dim_order=(3, 1, 0, 2))
    for dtype in FLOATING:
        yield Sample(make.tensor(3, 1400, dtype=dtype))
    yield Sample(make.tensor(2, 20, special=True))


OPS = [OpCases("aten::glu.out", glu, tolerance=(2e-6, 1e-9))]
OPS += [OpCases(f"aten::reflection_pad{n}d.out", pads(n)) for n in (1, 2, 3)]
OPS += [OpCases(f"aten::replication_pad{n}d.out", replication_pads(n)) for n in (1, 2, 3)]


def pad_error(message: str, op: str, shape: tuple[int, ...], padding: list[int]) -> ErrorCase:
    """A call of aten::<op>.out that must fail."""

    def args(make: Maker) -> list[Any]:
        return [make.tensor(*shape), padding, torch.zeros(shape)]

    return ErrorCase(f"aten::{op}.out", args, message)


ERRORS = [
    pad_error("is 4, but must be at most 3", "reflection_pad1d", (2, 4), [4, 0]),
    pad_error("dimension 1, of size 4, .* at most 3", "reflection_pad2d", (2, 4, 9), [0, 0, 4, 0]),
    pad_error("leaves no valid size", "replication_pad1d", (2, 4), [-2, -2]),
    pad_error("leaves no valid size", "replication_pad1d", (2, 4), [2**31 - 1, 2**31 - 1]),
    pad_error("is 4611686018427387904, but", "replication_pad1d", (2, 4), [2**62, 0]),
    pad_error("padding has 2 entries, but must have 4", "replication_pad2d", (2, 4, 4), [1, 1]),
    pad_error(r"self has shape \(4,\), but must have 2 or", "replication_pad1d", (4,), [1, 1]),
    pad_error(r"self has shape \(0, 4\)", "replication_pad1d", (0, 4), [1, 1]),
    pad_error("out", "replication_pad1d", (2, 4), [1, 1]),
    ErrorCase(
        "aten::glu.out",
        lambda make: [make.tensor(3, 4), 0, torch.zeros(1, 4)],
        "self has size 3 in dimension 0, but must be even",
    ),
    ErrorCase(
        "aten::glu.out",
        lambda make: [make.tensor(), 0, torch.zeros(1)],
        "self has no dimensions",
    ),
]
