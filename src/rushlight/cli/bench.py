"""`rushlight bench`: how fast a program loads and runs, and what memory it takes."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
    DataOption,
    FormOption,
    MethodOption,
    ThreadsOption,
    TracebackOption,
    console,
    help_text,
    reports_errors,
)
from rushlight.cli.compare import Options, run_comparison
from rushlight.cli.run import InputOption, SeedOption
from rushlight.errors import Code, RunError

if TYPE_CHECKING:
    from rich.table import Table

    from rushlight.runtime.measures import TraceEvent
    from rushlight.runtime.module import Module

NAME = "bench"
HELP = help_text(
    "Measure load time, latency and memory of a program. Needs no PyTorch; inputs that are not "
    "given are made up. With --compare MODEL may be model.py:build as for export: it is timed in "
    "every form that it can have, beside eager, torch.compile, ExecuTorch, ONNX Runtime and "
    "OpenVINO where they are installed, all by turns.",
    (
        "rushlight bench model.pte",
        "rushlight bench model.pte --threads 1 --repeat 20 --warmup 3",
        "rushlight bench model.pte --input x.npy --operators",
        "rushlight bench model.py:build --compare --only portable --only cpu --only eager",
    ),
)

CompareOption = Annotated[
    bool, typer.Option("--compare", help="Time all forms of the model and other runtimes.")
]
PeerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--peer",
        metavar="PYTHON",
        help="With --compare: the Python of an environment with further runtimes. Give it once "
        "for each.",
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        help="With --compare: a form (portable, cpu, ...) or a runtime (eager, compile, "
        "executorch, onnxruntime, openvino) to time; all by default. Give it once for each.",
    ),
]
PlotOption = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="FILE", help="With --compare: draw the table as a .png or .svg."
    ),
]

_LOADS = 5  # times that the program is loaded


@reports_errors
def main(
    model: Annotated[
        str, typer.Argument(metavar="MODEL.pte", help="The program file; or see --compare.")
    ],
    inputs: InputOption = None,
    method: MethodOption = "forward",
    threads: ThreadsOption = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Measured runs.")] = 50,
    warmup: Annotated[int, typer.Option("--warmup", min=0, help="Runs before them.")] = 5,
    operators: Annotated[
        bool, typer.Option("--operators", help="Also show the time that each operator takes.")
    ] = False,
    compare: CompareOption = False,
    peer: PeerOption = None,
    only: OnlyOption = None,
    plot: PlotOption = None,
    seed: SeedOption = 0,
    backend: FormOption = None,
    data: DataOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    options = Options(
        model=model,
        inputs=inputs or [],
        threads=threads,
        repeat=repeat,
        warmup=warmup,
        seed=seed,
        backend=backend,
        data=data,
        peers=peer or [],
        only=only or [],
        plot=plot,
    )
    if not compare:
        if peer or plot or only:
            raise RunError(
                "--peer, --only and --plot go with --compare", code=Code.INVALID_ARGUMENT
            )
        _bench(options, method, operators)
        return
    others = {"--operators": operators, "--method": method != "forward", "--backend": backend}
    wrong = [name for name, is_given in others.items() if is_given]
    if wrong:
        raise RunError(f"{wrong[0]} does not go with --compare", code=Code.INVALID_ARGUMENT)
    run_comparison(options)


def _bench(options: Options, method: str, operators: bool) -> None:
    """One program: a table of its load, latency and memory."""
    from rushlight.cli.inputs import complete, read_inputs
    from rushlight.runtime.load import load

    def opened(trace: bool = False) -> Module:
        return load(
            options.model,
            threads=options.threads,
            backend=options.backend,
            data=options.data,
            trace=trace,
        )

    loads = []
    for _ in range(_LOADS):
        start = time.perf_counter_ns()
        module = opened()
        loads.append(time.perf_counter_ns() - start)
    chosen = module[method]
    values = read_inputs(options.inputs, chosen.contract.inputs)
    flat = complete(chosen, values, random=True, seed=options.seed)
    args, kwargs = chosen.contract.in_spec.unflatten(iter(flat))
    for _ in range(options.warmup):
        chosen.call(args, kwargs)
    runs = []
    for _ in range(options.repeat):
        start = time.perf_counter_ns()
        chosen.call(args, kwargs)
        runs.append(time.perf_counter_ns() - start)
    out = console()
    out.print(repr(chosen.signature), markup=False)
    for form in module.forms:
        out.print(f"form {form.form}: {'used, ' if form.chosen else ''}{form.why}", markup=False)
    out.print(_summary(module, loads, runs))
    if operators:
        traced = opened(trace=True)
        for _ in range(options.warmup + 1):
            traced[method].call(args, kwargs)
        out.print(_operators(traced.trace.events()))


def _summary(module: Module, loads: Sequence[int], runs: Sequence[int]) -> Table:
    from rushlight.inspect.text import pairs_of, size_text, time_text

    table = pairs_of(3, right=(1,))
    ordered = sorted(runs)
    p90 = ordered[min(int(len(ordered) * 0.9), len(ordered) - 1)]
    memory = module.memory
    first = f"the first time {time_text(loads[0])}"
    table.add_row("load", time_text(statistics.median(loads)), f"median of {len(loads)}; {first}")
    table.add_row("run, minimum", time_text(ordered[0]), "")
    table.add_row("run, median", time_text(statistics.median(runs)), f"of {len(runs)}")
    table.add_row("run, 90th percentile", time_text(p90), "")
    table.add_row("memory of the module", size_text(memory.peak), "arenas, structures, scratch")
    table.add_row("touched of that", size_text(memory.resident), "by these inputs")
    table.add_row("constants", size_text(memory.constants), "mapped from the file")
    table.add_row("peak of the process", size_text(_peak_resident()), "resident, with Python")
    return table


def _peak_resident() -> int:
    """The most bytes of memory that this process had resident so far."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _operators(events: Sequence[TraceEvent]) -> Table:
    from rich.text import Text

    from rushlight.inspect.text import table_of, time_text

    spent: dict[str, list[int]] = defaultdict(list)
    for event in events:
        spent[event.name or event.kind].append(event.ns)
    total = sum(event.ns for event in events) or 1
    table = table_of("", "operator", "calls", "time", "share", right=(1, 2, 3), drop=(1, 3))
    for name, times in sorted(spent.items(), key=lambda item: -sum(item[1])):
        share = f"{sum(times) / total:.1%}"
        table.add_row(Text(name), f"{len(times):,}", time_text(sum(times)), share)
    return table
