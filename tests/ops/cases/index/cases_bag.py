"""Cases of embedding bags and of distances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...harness import FLOATING, ErrorCase, Maker, OpCases, Sample

aten = torch.ops.aten
SUM, MEAN, MAX = 0, 1, 2


# --- embedding bag ------------------------------------------------------------------------------


def bags(make: Maker) -> Iterator[Sample]:
    offsets = torch.tensor([0, 3, 3, 5, 12])
    for dtype in FLOATING:
        for columns in (1, 9, 700):
            table = make.tensor(10, columns, dtype=dtype)
            indices = make.integers(12, low=0, high=10)
            for mode in (SUM, MEAN, MAX):
                for last in (False, True):
                    for padding in (-1, 4):
                        yield Sample(
                            table,
                            indices,
                            offsets,
                            mode=mode,
                            include_last_offset=last,
                            padding_idx=padding,
                        )
            weights = make.tensor(12, dtype=dtype)
            yield Sample(table, indices, offsets, per_sample_weights=weights)
            yield Sample(table, indices, offsets, per_sample_weights=weights, padding_idx=2)
    table = make.tensor(6, 5, special=True)
    small = make.integers(4, low=0, high=6, dtype=torch.int32)
    for mode in (SUM, MEAN, MAX):
        yield Sample(table, small, torch.tensor([0, 2], dtype=torch.int32), mode=mode)
        yield Sample(table, torch.tensor([], dtype=torch.int64), torch.tensor([0, 0]), mode=mode)
        yield Sample(make.tensor(6, 5, order=(1, 0)), small.long(), torch.tensor([0]), mode=mode)
        yield Sample(
            table, small[:0].long(), torch.tensor([0]), mode=mode, include_last_offset=True
        )
        # The last offset lies before the last index.
        yield Sample(
            table, small.long(), torch.tensor([0, 1, 3]), mode=mode, include_last_offset=True
        )


def bag_eager(
    op: Any, sizes: Callable[[torch.Tensor, int], int]
) -> Callable[..., list[torch.Tensor]]:
    """Eager's results, those that only a backward pass reads in the sizes that the rule for shapes
    gives them; and of 16-bit tables by way of float32, where eager rounds once as well."""

    def reference(table: torch.Tensor, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        outs = list(op(table, *args, **kwargs))
        half = table.dtype in (torch.float16, torch.bfloat16)
        if half:
            wide = dict(kwargs)
            if "per_sample_weights" in kwargs:
                wide["per_sample_weights"] = kwargs["per_sample_weights"].float()
            outs[0] = op(table.float(), *args, **wide)[0].to(table.dtype)
        offsets, mode = args[1], kwargs.get("mode", SUM)
        shaped = aten._embedding_bag(table, *args, **kwargs)
        count = len(outs[0])
        fast = table.dtype in (torch.float32, torch.float16) and table.stride(1) == 1
        direct = mode == SUM and fast and kwargs.get("padding_idx", -1) < 0
        ends = torch.cat([offsets[1:count], torch.tensor([len(args[0])])])[:count]
        lengths = (ends - offsets[:count]).long()
        outs[1] = torch.arange(count).repeat_interleave(lengths).to(offsets.dtype)
        if direct:
            outs[1] = outs[1][:0]
        outs[2] = torch.zeros(sizes(offsets, count), dtype=offsets.dtype)
        outs[2][:count] = shaped[2]
        outs[3] = outs[3] if mode == MAX else shaped[2]
        return outs

    return reference


# --- distances ----------------------------------------------------------------------------------

POWERS = (0.0, 0.5, 1.0, 2.0, 3.0, 2.5, float("inf"))


def cdist(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        for p in POWERS:
            yield Sample(make.tensor(7, 40, dtype=dtype), make.tensor(5, 40, dtype=dtype), p, None)
    for p in POWERS:
        yield Sample(make.tensor(2, 3, 1), make.tensor(2, 4, 1), p, 2)
        yield Sample(make.tensor(3, 1, 4, 9), make.tensor(2, 5, 9), p, None)
        yield Sample(make.tensor(3, 0), make.tensor(2, 0), p, None)
        yield Sample(
            make.tensor(2, 6, 1100, order=(0, 2, 1)),
            make.tensor(2, 3, 1100),
            p,
            None,
            out_dim_order=(2, 0, 1),
        )
    for dtype in FLOATING:  # enough rows for Euclidean distances from products
        yield Sample(make.tensor(70, 90, dtype=dtype), make.tensor(101, 90, dtype=dtype), 2.0, None)
    yield Sample(make.tensor(2, 40, 7, order=(0, 2, 1)), make.tensor(3, 7), 2.0, 0)
    yield Sample(make.tensor(5, 6), make.tensor(3, 6), 2.0, 1)
    yield Sample(make.tensor(0, 4), make.tensor(2, 4), 2.0, None)
    yield Sample(make.tensor(2, 0, 4), make.tensor(2, 3, 4), 2.0, None)
    same = make.tensor(4, 33)
    for p in POWERS:
        yield Sample(same, same.clone(), p, None)
    odd = make.tensor(9, 1, special=True)
    for p in (0.0, 1.0):
        yield Sample(odd, make.tensor(3, 1), p, 2)


def pdist(make: Maker) -> Iterator[Sample]:
    for p in POWERS:
        for shape in ((6, 40), (2, 3), (9, 700), (5, 0), (1, 4), (0, 4)):
            yield Sample(make.tensor(*shape), p)
        yield Sample(make.tensor(5, 7, order=(1, 0)), p)
        for dtype in FLOATING:
            yield Sample(make.tensor(5, 7, dtype=dtype), p)


def in_double(op: Any) -> Callable[..., torch.Tensor]:
    """Eager in double, contiguous: it refuses 16-bit types and permuted rows, and float32 loses
    more than the kernels may."""

    def reference(x: torch.Tensor, *args: Any) -> torch.Tensor:
        wide = [a.double() if isinstance(a, torch.Tensor) else a for a in args]
        result: torch.Tensor = op(x.double().contiguous(), *wide).to(x.dtype)
        return result

    return reference


OPS = [
    OpCases(
        "aten::_cdist_forward.out", cdist, in_double(aten._cdist_forward), tolerance=(1e-5, 1e-6)
    ),
    OpCases(
        "aten::_embedding_bag.out",
        bags,
        bag_eager(aten._embedding_bag, lambda offsets, count: count),
        tolerance=(1e-5, 1e-5),
    ),
    OpCases(
        "aten::_embedding_bag_forward_only.out",
        bags,
        bag_eager(aten._embedding_bag_forward_only, lambda offsets, count: len(offsets)),
        tolerance=(1e-5, 1e-5),
    ),
    OpCases("aten::_pdist_forward.out", pdist, in_double(aten._pdist_forward), (1e-5, 1e-6)),
]


def bag_error(
    message: str,
    indices: list[int],
    offsets: list[int],
    mode: int = SUM,
    weights: torch.Tensor | None = None,
    last: bool = False,
) -> ErrorCase:
    """A call on a table of 5 rows."""

    def args(make: Maker) -> list[Any]:
        count = len(offsets)
        outs = [torch.zeros(count, dtype=torch.int64) for _ in range(2)]
        return [
            *(make.tensor(5, 3), torch.tensor(indices), torch.tensor(offsets)),
            *(False, mode, False, weights, last, -1),
            *(torch.zeros(count, 3), torch.zeros(len(indices), dtype=torch.int64), *outs),
        ]

    return ErrorCase("aten::_embedding_bag.out", args, message)


def cdist_error(
    message: str, *shapes: tuple[int, ...], p: float = 2.0, mode: int | None = None
) -> ErrorCase:
    return ErrorCase(
        "aten::_cdist_forward.out",
        lambda make: [*(make.tensor(*s) for s in shapes[:2]), p, mode, torch.zeros(*shapes[2])],
        message,
    )


ERRORS = [
    bag_error("index 5 is out of bounds", [0, 5, 1], [0, 2]),
    bag_error("index -1 is out of bounds", [0, -1, 1], [0, 2]),
    bag_error(r"offsets\[0\] is 1, but offsets must start at 0", [0, 1], [1]),
    bag_error(r"offsets\[2\] is 1, but offsets must .* not decrease", [0, 1, 2], [0, 2, 1]),
    bag_error(r"offsets\[1\] is 4, but offsets must .* at most .* 3", [0, 1, 2], [0, 4]),
    bag_error(r"offsets\[1\] is -4", [0, 1, 2], [0, -4]),
    bag_error("mode is 3, but must be 0", [0, 1], [0], mode=3),
    bag_error("per_sample_weights are given, but mode is 1", [0, 1], [0], 1, torch.ones(2)),
    bag_error(r"per_sample_weights has shape \(3,\)", [0, 1], [0], 0, torch.ones(3)),
    cdist_error("p is -1, but must be 0 or greater", (3, 2), (4, 2), (3, 4), p=-1.0),
    cdist_error("compute_mode is 3, but must be None, 0, 1 or 2", (3, 2), (4, 2), (3, 4), mode=3),
    cdist_error("p is nan", (3, 2), (4, 2), (3, 4), p=float("nan")),
    cdist_error(r"x1 has shape \(3, 2\) and x2 has \(4, 3\)", (3, 2), (4, 3), (3, 4)),
    cdist_error(r"x1 has shape \(2,\)", (2,), (4, 2), (3, 4)),
    cdist_error("whose batches cannot be broadcast", (2, 3, 2), (3, 4, 2), (2, 3, 4)),
    cdist_error("the result has sizes", (3, 2), (4, 2), (3, 3)),
    ErrorCase(
        "aten::_pdist_forward.out",
        lambda make: [make.tensor(4), 2.0, torch.zeros(6)],
        r"self has shape \(4,\), but must have 2 dimensions",
    ),
]
