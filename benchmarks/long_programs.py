"""What programs of many calls cost: CPU seconds of an export by stage, as they grow.

Every step of the compiler is linear, so that a program of twice as many calls takes twice as long.
The last column is the whole, verification included, over what `torch.export.export` and
`run_decompositions` of the same model take in the same process.

  python -m benchmarks long_programs --shapes chain,stack --calls 1000,2000
"""

from __future__ import annotations

import gc
import itertools
import time
import warnings
from typing import Any

import common
import torch
from torch import nn

import rushlight as rl

GOAL = 2.0
STAGES = ("capture", "edge", "partition", "lower", "plan memory", "emit", "verify")


class Chain(nn.Module):
    """x * a + b, again and again."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.times = calls // 2
        self.a = nn.Parameter(1 + torch.rand(8) / 100)
        self.b = nn.Parameter(torch.randn(8) / 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            x = x * self.a + self.b
        return x


class Residual(Chain):
    """Each value is used twice."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            x = x + torch.tanh(x)
        return x


class Alternating(Chain):
    """What backends take and what none has, in turn."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            x = torch.cumsum(torch.relu(x), 0)
        return x


class Stack(nn.Module):
    """A list of parameters, scaled, stacked and summed up."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.all = nn.ParameterList([nn.Parameter(torch.randn(8)) for _ in range(calls)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x * one for one in self.all]).sum(0)


class Linears(nn.Module):
    """Linear layers, one after the other."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.all = nn.Sequential(*(nn.Linear(8, 8) for _ in range(calls)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.all(x)
        return result


SHAPES: dict[str, type[nn.Module]] = {
    "chain": Chain,
    "residual": Residual,
    "alternating": Alternating,
    "stack": Stack,
    "linears": Linears,
}


def main() -> None:
    options = common.parser(__doc__, models=(), repeat=1)
    options.add_argument("--shapes", type=lambda text: text.split(","), default=list(SHAPES))
    options.add_argument(
        "--calls",
        type=lambda text: [int(one) for one in text.split(",")],
        default=[1000, 2000, 4000, 8000],
    )
    options.add_argument(
        "--backends", type=lambda text: text.split(","), default=["portable", "cpu", "xnnpack"]
    )
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    report = common.Report(
        "Export of long programs, CPU seconds on one thread",
        ["shape", "calls", "backend", *STAGES, "total", f"x of torch (goal {GOAL:.0f})"],
    )
    _torch(Chain(4))
    for backend in arguments.backends:  # imports and caches
        _ours(Chain(4), backend)
    for shape in arguments.shapes:
        for calls in arguments.calls:
            model = SHAPES[shape](calls).eval()
            theirs = _torch(model)
            for backend in arguments.backends:
                spent = _ours(model, backend)
                total = sum(spent.values())
                report.add(
                    *(shape, str(calls), backend),
                    *(f"{spent.get(stage, 0):.2f}" for stage in STAGES),
                    *(f"{total:.2f}", common.ratio(total, theirs)),
                    shape=shape,
                    calls=calls,
                    backend=backend,
                    torch=theirs,
                    stages=spent,
                )
    report.finish(arguments.json)


def _torch(model: nn.Module) -> float:
    """CPU seconds that torch takes to capture and decompose a model."""
    gc.collect()
    start = time.process_time()
    torch.export.export(model, (torch.randn(8, 8),)).run_decompositions()
    return time.process_time() - start


def _ours(model: nn.Module, backend: str) -> dict[str, float]:
    """CPU seconds by stage."""
    gc.collect()
    marks: list[tuple[str, float]] = []

    def mark(stage: str) -> None:
        marks.append((stage, time.process_time()))

    program: Any = rl.export(model, (torch.randn(8, 8),), backend=backend, progress=mark)
    mark("end")
    del program
    spent: dict[str, float] = {}
    for (stage, start), (_, end) in itertools.pairwise(marks):
        name = next(known for known in STAGES if known in stage)
        spent[name] = spent.get(name, 0) + end - start
    return spent


if __name__ == "__main__":
    main()
