"""The cost of programs with many calls: CPU seconds of an export by stage, as they grow.

Every stage of the compiler is linear, so that a program of twice as many calls takes twice as long;
so are loading it and its first run. The last column is the whole export, verification included,
over what `torch.export.export` and `run_decompositions` of the same model take in the same process
(of `quantized`, of the model before; of `methods`, of one method times their number).

  python -m benchmarks long_programs --shapes chain,stack --calls 1000,2000
  python -m benchmarks long_programs --shapes quantized,conds --calls 300,1200
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
STAGES = ("capture", "quantise", "edge", "partition", "lower", "plan memory", "emit", "verify")
LAST = ("total", "load", "first run")


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
    """Operators that backends take and operators that none takes, alternately."""

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


class Conds(Chain):
    """Branches, one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for limit in range(2 * self.times):
            x = torch.cond(x.sum() > limit, lambda t: t + 1, lambda t: t - 1, (x,))
        return x


SHAPES: dict[str, type[nn.Module]] = {
    "chain": Chain,
    "residual": Residual,
    "alternating": Alternating,
    "stack": Stack,
    "linears": Linears,
    "quantized": Linears,
    "conds": Conds,
    "methods": Chain,
}
CALLS_OF_METHOD = 16  # of the shape "methods", whose calls are those of all its methods


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
        ["shape", "calls", "backend", *STAGES, *LAST, f"x of torch (goal {GOAL:.0f})"],
    )
    _torch("chain", 4)
    for backend in arguments.backends:  # imports and caches
        _ours("quantized", 4, backend)
    for shape in arguments.shapes:
        for calls in arguments.calls:
            theirs = _torch(shape, calls)
            for backend in arguments.backends:
                spent = _ours(shape, calls, backend)
                total = sum(spent.get(stage, 0) for stage in STAGES)
                report.add(
                    *(shape, str(calls), backend),
                    *(f"{spent.get(stage, 0):.2f}" for stage in STAGES),
                    *(f"{total:.2f}", f"{spent['load']:.2f}", f"{spent['first run']:.2f}"),
                    common.ratio(total, theirs),
                    shape=shape,
                    calls=calls,
                    backend=backend,
                    torch=theirs,
                    stages=spent,
                )
    report.finish(arguments.json)


def _input() -> torch.Tensor:
    return torch.randn(8, 8)


def _model(shape: str, calls: int) -> tuple[nn.Module, int]:
    """A model, and how many methods are made of it."""
    if shape == "methods":
        return Chain(CALLS_OF_METHOD).eval(), calls // CALLS_OF_METHOD
    return SHAPES[shape](calls).eval(), 1


def _torch(shape: str, calls: int) -> float:
    """CPU seconds that torch takes to capture and decompose a model."""
    model, times = _model(shape, calls)
    gc.collect()
    start = time.process_time()
    torch.export.export(model, (_input(),)).run_decompositions()
    return (time.process_time() - start) * times


def _ours(shape: str, calls: int, backend: str) -> dict[str, float]:
    """CPU seconds by stage, of loading, and of the first run."""
    model, times = _model(shape, calls)
    gc.collect()
    marks: list[tuple[str, float]] = []

    def mark(stage: str) -> None:
        marks.append((stage, time.process_time()))

    recipe = "int8-dynamic" if shape == "quantized" else None
    x = _input()
    what: Any = model
    if shape == "methods":
        mark("capture")
        what = {f"method{i}": torch.export.export(model, (x,)) for i in range(times)}
    args = () if shape == "methods" else (x,)
    program = rl.export(what, args, backend=backend, quantize=recipe, progress=mark)
    mark("load")
    module = rl.load(program.buffer, methods=list(program.methods)[:1] if times > 1 else None)
    mark("first run")
    module[next(iter(module.methods))](x.numpy())
    mark("end")
    spent: dict[str, float] = {}
    for (stage, start), (_, end) in itertools.pairwise(marks):
        name = next((known for known in STAGES if known in stage), stage)
        spent[name] = spent.get(name, 0) + end - start
    return spent


if __name__ == "__main__":
    main()
