"""What a trace, and a report of failures, cost: programs with and without, in turns, on one thread.

"ns per event" is the difference of the least times over the instructions and the fused
operators that are recorded. Without a tracer a method runs a copy of its loop that knows of none
(cpp/method/method_run.cpp), so that what is left is one comparison a run, and one for each operator
of the engine's graphs. "ns per instruction" is what a report costs for each, which reads the clock
when an instruction begins.

"Switched off" is the time of a whole instruction of the cheapest kind, which moves a number, in a
program of 20,000 without a tracer: what tracing costs there is less than all of it.

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
from rushlight.schema import program as schema
from rushlight.serialize.pte import read_pte, write_pte

BACKENDS = ("portable", "cpu", "xnnpack")
_SECONDS = 0.02  # of calls between two readings of the clock
_MOVES = 20_000


def main() -> None:
    options = common.parser(__doc__, models=("mobilenet_v2", "chain_50"), repeat=60)
    options.add_argument("--backends", default=",".join(BACKENDS))
    arguments = options.parse_args()
    report = common.Report(
        "Traces, least times",
        [
            *("model", "without, µs", "traced, µs", "ratio", "median ratio", "events"),
            *("ns per event", "with a report, µs", "ratio", "median ratio", "ns per instruction"),
        ],
    )
    for name in arguments.models:
        case = models.build(name)
        for backend in arguments.backends.split(","):
            program = rl.export(case.module, case.args, case.kwargs or None, backend=backend)
            _measure(f"{name}@{backend}", program.buffer, case.args, arguments.repeat, report)
    off = _switched_off(arguments.repeat)
    print(f"Switched off, a whole instruction takes {off:.2f} ns")
    report.finish(arguments.json)


def _switched_off(repeat: int) -> float:
    """The nanoseconds of an instruction that moves a number, in a method without a tracer."""
    file = read_pte(rl.export(torch.nn.ReLU(), (torch.ones(4),)).buffer)
    [plan] = file.program.execution_plan
    chain, first = plan.chains[0], len(plan.values)
    plan.values += [schema.EValue(schema.Int(1)), schema.EValue(schema.Int(2))]
    without = rl.load(write_pte(file), threads=1)
    move = schema.Instruction(schema.MoveCall(first, first + 1))
    chain.instructions = [*chain.instructions, *[move] * _MOVES]
    moving = rl.load(write_pte(file), threads=1)
    x = torch.ones(4).numpy()
    least = []
    for module in (without, moving):
        times = []
        for _ in range(repeat + 1):
            start = time.perf_counter()
            module(x)
            times.append(time.perf_counter() - start)
        least.append(min(times[1:]))
    return (least[1] - least[0]) / _MOVES * 1e9


def _measure(
    name: str, pte: bytes, args: tuple[torch.Tensor, ...], repeat: int, report: common.Report
) -> None:
    plain = rl.load(pte, threads=1)
    traced = rl.load(pte, threads=1, trace=True)
    reporting = rl.load(pte, threads=1, failure_report="unused.bin")
    arrays = [tensor.numpy() for tensor in args]
    loops: list[Callable[[], object]] = [
        lambda: plain(*arrays),
        lambda: traced(*arrays),
        lambda: reporting(*arrays),
    ]
    for call in loops:
        call()
    start = time.perf_counter()
    loops[0]()
    calls = max(1, int(_SECONDS / (time.perf_counter() - start)))
    times: list[list[float]] = [[], [], []]
    for _ in range(repeat):
        for call, spent in zip(loops, times, strict=True):
            traced.trace.clear()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            spent.append((time.perf_counter() - start) / calls)
    traced.trace.clear()
    traced(*arrays)
    run = traced.trace.events()
    events, instructions = len(run), sum(not event.inside for event in run)
    without, with_trace, with_report = map(min, times)
    middle = median(b / a for a, b, _ in zip(*times, strict=True))
    middle_of_report = median(b / a for a, _, b in zip(*times, strict=True))
    assert traced.trace.dropped == (0, 0)
    report.add(
        name,
        f"{without * 1e6:.2f}",
        f"{with_trace * 1e6:.2f}",
        f"{with_trace / without:.4f}",
        f"{middle:.4f}",
        str(events),
        f"{(with_trace - without) / events * 1e9:.0f}",
        f"{with_report * 1e6:.2f}",
        f"{with_report / without:.4f}",
        f"{middle_of_report:.4f}",
        f"{(with_report - without) / instructions * 1e9:.1f}",
        name=name,
        without=without,
        traced=with_trace,
        median=middle,
        events=events,
        reporting=with_report,
        reporting_median=middle_of_report,
        instructions=instructions,
    )


if __name__ == "__main__":
    main()
