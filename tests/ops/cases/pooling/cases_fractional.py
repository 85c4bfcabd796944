"""Cases of max pooling over windows at random places."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from ...harness import ErrorCase, Maker, OpCases, Sample


def pooling(dims: int) -> Callable[[Maker], Iterator[Sample]]:
    def samples(make: Maker) -> Iterator[Sample]:
        for dtype in (torch.float32, torch.float64):
            for kernel, size in (([2] * dims, [3] * dims), ([3, 1, 2][:dims], [1, 4, 3][:dims])):
                x = make.tensor(2, 3, *[7, 8, 9][:dims], dtype=dtype)
                for draw in (make.tensor(2, 3, dims, dtype=dtype, low=0, high=1), x[..., 0]):
                    places = draw.reshape(-1)[: 6 * dims].reshape(2, 3, dims).abs() % 1
                    yield Sample(x, kernel, size, places.contiguous())
                places = make.tensor(1, 3, dims, dtype=dtype, low=0, high=1)
                yield Sample(x[0].clone(), kernel, size, places)
        none = torch.empty(0, 1, *[2**21 - 1] * dims)
        yield Sample(none, [1] * dims, [2] * dims, torch.empty(0, 1, dims))
        odd = make.tensor(1, 2, *[6] * dims, special=True)
        yield Sample(odd, [2] * dims, [4] * dims, torch.full((1, 2, dims), 0.5))
        yield Sample(odd, [5] * dims, [1] * dims, torch.zeros(1, 2, dims))
        yield Sample(odd, [2] * dims, [4] * dims, torch.full((1, 2, dims), 4.9))

    return samples


OPS = [
    OpCases("aten::fractional_max_pool2d.output", pooling(2)),
    OpCases("aten::fractional_max_pool3d.output", pooling(3)),
]


def error(message: str, kernel: int, size: int, samples: torch.Tensor) -> ErrorCase:
    def args(make: Maker) -> list[object]:
        outs = [torch.zeros(1, 2, 3, 3), torch.zeros(1, 2, 3, 3).long()]
        return [make.tensor(1, 2, 5, 5), [kernel] * 2, [size] * 2, samples, *outs]

    return ErrorCase("aten::fractional_max_pool2d.output", args, message)


PLACES = torch.full((1, 2, 2), 0.5)
ERRORS = [
    error("random_samples holds nan", 2, 3, PLACES * float("nan")),
    error("random_samples holds 5e.09", 2, 3, PLACES * 1e10),
    error(r"random_samples has shape \(1, 2, 1\)", 2, 3, PLACES[..., :1].contiguous()),
    error("3 windows of 6 do not fit dimension 2", 6, 3, PLACES),
    error("5 windows of 2 do not fit", 2, 5, PLACES),
    error("windows of 0 do not fit", 0, 3, PLACES),
]
