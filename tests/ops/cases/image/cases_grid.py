"""Cases of sampling images at the places of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...cases.image.cases_resize import CHANNELS_LAST
from ...harness import ErrorCase, Maker, OpCases, Sample


def flat(make: Maker) -> Iterator[Sample]:
    for mode in (0, 1, 2):
        for padding in (0, 1, 2):
            for align in (False, True):
                rest = (mode, padding, align)
                for dtype in (torch.float32, torch.float64):
                    x = make.tensor(2, 3, 5, 7, dtype=dtype)
                    for reach in (0.9, 3.0):
                        grid = make.tensor(2, 4, 6, 2, dtype=dtype, low=-reach, high=reach)
                        yield Sample(x, grid, *rest)
                yield Sample(make.tensor(1, 2, 9, 4), make.tensor(1, 3, 150, 2, low=-1.2), *rest)
                yield Sample(make.tensor(1, 2, 1, 1), make.tensor(1, 3, 2, 2, low=-1.2), *rest)
                grid = make.tensor(1, 3, 3, 2, low=-1.2, order=CHANNELS_LAST)
                yield Sample(make.tensor(1, 4, 5, 5, order=CHANNELS_LAST), grid, *rest)
                far = torch.tensor([[[[1e30, 0.0], [-1e30, 1.0], [1e9, -1e9], [-1.0, 1.0]]]])
                if mode == 0 and padding < 2:
                    yield Sample(make.tensor(1, 2, 4, 4), far, *rest)
    yield Sample(make.tensor(0, 3, 5, 7), make.tensor(0, 2, 2, 2), 0, 0, False)
    yield Sample(make.tensor(1, 3, 5, 7), make.tensor(1, 0, 2, 2), 0, 0, False)
    # Infinities that no place touches add nothing.
    odd = torch.tensor([[[[float("inf"), 1.0, 2.0], [3.0, 4.0, float("nan")]]]])
    yield Sample(odd, torch.full((1, 1, 2, 2), 7.0), 0, 0, False)


def deep(make: Maker) -> Iterator[Sample]:
    for mode in (0, 1):
        for padding in (0, 1, 2):
            for align in (False, True):
                rest = (mode, padding, align)
                for dtype in (torch.float32, torch.float64):
                    x = make.tensor(2, 3, 4, 5, 7, dtype=dtype)
                    for reach in (0.9, 3.0):
                        grid = make.tensor(2, 2, 4, 6, 3, dtype=dtype, low=-reach, high=reach)
                        yield Sample(x, grid, *rest)
                order = (0, 2, 3, 4, 1)
                x = make.tensor(1, 4, 2, 5, 5, order=order)
                yield Sample(x, make.tensor(1, 2, 3, 70, 3, low=-1.2), *rest)
    yield Sample(make.tensor(0, 3, 5, 7, 2), make.tensor(0, 2, 2, 2, 3), 0, 0, False)


OPS = [
    OpCases("aten::grid_sampler_2d.out", flat, tolerance=(1e-4, 5e-5)),
    OpCases("aten::grid_sampler_3d.out", deep, tolerance=(1e-4, 5e-5)),
]


def error(message: str, op: str = "2d", **changed: Any) -> ErrorCase:
    def args(make: Maker) -> list[Any]:
        arguments: dict[str, Any] = {
            "input": make.tensor(1, 2, 4, 4),
            "grid": make.tensor(1, 3, 3, 2),
            "mode": 0,
            "padding": 0,
            "align": False,
            "out": torch.zeros(1, 2, 3, 3),
        }
        return list((arguments | changed).values())

    return ErrorCase(f"aten::grid_sampler_{op}.out", args, message)


ERRORS = [
    error("interpolation_mode is 3, but must be 0 .bilinear., 1", mode=3),
    error("padding_mode is -1", padding=-1),
    error("grid is float64, but must be float32", grid=torch.zeros(1, 3, 3, 2).double()),
    error("its last 2", grid=torch.zeros(1, 3, 3, 3)),
    error("its first size must be 1", grid=torch.zeros(2, 3, 3, 2)),
    error("only its first two sizes may be 0", input=torch.zeros(1, 2, 0, 4)),
    error("input is int32, but must be floating", input=torch.zeros(1, 2, 4, 4).int()),
    error("grid has shape", grid=torch.zeros(3, 3, 2)),
    error("out", out=torch.zeros(1, 2, 3, 2)),
    error(
        "interpolation_mode is 2, but must be 0 .bilinear. or 1",
        op="3d",
        input=torch.zeros(1, 2, 4, 4, 4),
        grid=torch.zeros(1, 3, 3, 3, 3),
        mode=2,
        out=torch.zeros(1, 2, 3, 3, 3),
    ),
]
