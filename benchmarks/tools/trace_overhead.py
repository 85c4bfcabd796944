"""What a trace costs: the same programs with and without one, in turns, on one thread.

"ns per instruction" is the difference of the least times over the instructions and the fused
operators that are recorded. Without a tracer a method runs a copy of its loop that knows of none
(cpp/method/method_run.cpp), so that what is left is one comparison a run, and one for each operator
of the engine's graphs.

  python -m benchmarks trace_overhead --models mobilenet_v2,chain_50
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
import models
import torch

import rushlight as rl

BACKENDS = ("portable", "cpu", "xnnpack")
_SECONDS = 0.02  # of calls between two readings of the clock


def main() -> None:
    options = common.parser(__doc__, models=("mobilenet_v2", "chain_50"), repeat=60)
    options.add_argument("--backends", default=",".join(BACKENDS))
    arguments = options.parse_args()
    report = common.Report(
        "Traces, least times",
        ["model", "without, µs", "traced, µs", "ratio", "median ratio", "events", "ns per event"],
    )
    for name in arguments.models:
        case = models.build(name)
        for backend in arguments.backends.split(","):
            program = rl.export(case.module, case.args, case.kwargs or None, backend=backend)
            _measure(f"{name}@{backend}", program.buffer, case.args, arguments.repeat, report)
    report.finish(arguments.json)


def _measure(
    name: str, pte: bytes, args: tuple[torch.Tensor, ...], repeat: int, report: common.Report
) -> None:
    plain = rl.load(pte, threads=1)
    traced = rl.load(pte, threads=1, trace=True)
    arrays = [tensor.numpy() for tensor in args]
    loops: list[Callable[[], object]] = [lambda: plain(*arrays), lambda: traced(*arrays)]
    for call in loops:
        call()
    start = time.perf_counter()
    loops[0]()
    calls = max(1, int(_SECONDS / (time.perf_counter() - start)))
    times: list[list[float]] = [[], []]
    for _ in range(repeat):
        for call, spent in zip(loops, times, strict=True):
            traced.trace.clear()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            spent.append((time.perf_counter() - start) / calls)
    traced.trace.clear()
    traced(*arrays)
    events = len(traced.trace.events())
    without, with_trace = map(min, times)
    middle = median(b / a for a, b in zip(*times, strict=True))
    assert traced.trace.dropped == (0, 0)
    report.add(
        name,
        f"{without * 1e6:.2f}",
        f"{with_trace * 1e6:.2f}",
        f"{with_trace / without:.4f}",
        f"{middle:.4f}",
        str(events),
        f"{(with_trace - without) / events * 1e9:.0f}",
        name=name,
        without=without,
        traced=with_trace,
        median=middle,
        events=events,
    )


if __name__ == "__main__":
    main()
