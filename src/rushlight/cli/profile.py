"""`rushlight profile`: where the time of a program goes, operator by operator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
    DataOption,
    FormOption,
    MethodOption,
    ModelArgument,
    ThreadsOption,
    TracebackOption,
    console,
    help_text,
    reports_errors,
)
from rushlight.cli.run import InputOption, SeedOption

if TYPE_CHECKING:
    from rich.table import Table

    from rushlight.inspect.profile import OperatorTime, Profile

NAME = "profile"
HELP = help_text(
    "Show where the time of a program goes: each operator's time, GFLOP/s and GB/s, its share of "
    "what this machine reaches, and the Python lines that it comes from. Needs no PyTorch; inputs "
    "that are not given are made up.",
    (
        "rushlight profile model.pte",
        "rushlight profile model.pte --threads 1 --input x.npy --rows 10",
        "rushlight profile model.pte --json",
    ),
)


@reports_errors
def main(
    model: ModelArgument,
    inputs: InputOption = None,
    method: MethodOption = "forward",
    threads: ThreadsOption = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Measured runs.")] = 20,
    warmup: Annotated[int, typer.Option("--warmup", min=0, help="Runs before them.")] = 3,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="Operators to show, the slowest first.")
    ] = 30,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON instead of a table.")
    ] = False,
    seed: SeedOption = 0,
    backend: FormOption = None,
    data: DataOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.cli.inputs import complete, read_inputs
    from rushlight.inspect.profile import profile_of
    from rushlight.inspect.work import sizes_of_run
    from rushlight.runtime.load import load
    from rushlight.runtime.peaks import measure_peaks

    module = load(model, threads=threads, backend=backend, data=data, trace=True)
    chosen = module[method]
    values = read_inputs(inputs or [], chosen.contract.inputs)
    flat = complete(chosen, values, random=True, seed=seed)
    args, kwargs = chosen.contract.in_spec.unflatten(iter(flat))
    peaks = measure_peaks(module.threads)
    for _ in range(warmup):
        chosen.call(args, kwargs)
    sizes = {method: sizes_of_run(model, method, flat, data)}
    profile = profile_of(
        *(model, module, method, lambda: chosen.call(args, kwargs)),
        runs=repeat,
        peaks=peaks,
        sizes=sizes,
    )
    if as_json:
        typer.echo(json.dumps(profile.to_json(), indent=1))
        return
    out = console()
    out.print(_table(profile, rows))
    out.print(_totals(profile))
    if not any(operator.sources for operator in profile.operators):
        out.print(
            "The file has no debug information, so Python lines are not known: programs that "
            "rushlight.export makes have it, unless it is told debug='none'.",
            style="dim",
        )


def _table(profile: Profile, rows: int) -> Table:
    from rich.text import Text

    from rushlight.inspect.text import short_source, table_of, time_text

    rate = f"{_operations(profile)}/s"
    columns = ("time", "share", rate, "of peak", "GB/s", "of peak", "operator", "Python")
    title = f"{profile.method}: time by operator, median of {profile.runs} runs"
    table = table_of(title, *columns, right=(0, 1, 2, 3, 4, 5), drop=(7, 5, 4, 3, 2))
    for operator in profile.operators[:rows]:
        source = operator.sources[0] if operator.sources else None
        more = f" (+{len(operator.sources) - 1})" if len(operator.sources) > 1 else ""
        table.add_row(
            time_text(operator.ns),
            f"{operator.ns / profile.total_ns:.1%}",
            _rate(operator.gflops),
            _share(operator.of_flops(profile.peaks)),
            _rate(operator.gbytes),
            _share(operator.of_bandwidth(profile.peaks)),
            Text(_name(operator)),
            Text(short_source(source) + more, style="dim", overflow="ellipsis", no_wrap=True),
        )
    left = profile.operators[rows:]
    if left:
        took = time_text(sum(operator.ns for operator in left))
        table.caption = f"{len(left)} more took {took}; --rows or --json shows them"
    return table


def _name(operator: OperatorTime) -> str:
    """The operator with its nodes: "Product+ (linear, gelu)"."""
    nodes = f" ({', '.join(operator.nodes)})" if operator.nodes else ""
    return f"{operator.name}{nodes}" + (f" x{operator.calls}" if operator.calls > 1 else "")


def _operations(profile: Profile) -> str:
    """The unit in which the operations of all operators are counted."""
    return "GOP" if any(operator.is_integer for operator in profile.operators) else "GFLOP"


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1f}"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _totals(profile: Profile) -> Table:
    from rushlight.inspect.text import pairs_of, time_text

    table = pairs_of(3, right=(1,))
    peaks = profile.peaks
    threads = f"{peaks.threads} thread{'s' if peaks.threads > 1 else ''}"
    flops = sum(operator.flops or 0 for operator in profile.operators)
    rate, unit = flops / profile.total_ns, _operations(profile)
    share = sum(operator.least_ns(peaks) for operator in profile.operators) / profile.total_ns
    outside = profile.outside_ns
    table.add_row("a run", time_text(profile.total_ns), f"{threads}, with the call from Python")
    table.add_row(
        "in no operator", time_text(outside), f"{outside / profile.total_ns:.1%} of the run"
    )
    if flops:
        done = f"{flops / 1e9:.3g} {unit}, {share:.0%} of the peak"
        table.add_row("all operators", f"{rate:.1f} {unit}/s", done)
    table.add_row(
        "this machine's peak", f"{peaks.flops / 1e9:.0f} GFLOP/s", "float32, measured just now"
    )
    if unit == "GOP":
        table.add_row("of integers", f"{peaks.integer_ops / 1e9:.0f} GOP/s", "int8, added to int32")
    table.add_row(
        "its memory",
        f"{peaks.bandwidth / 1e9:.1f} GB/s",
        "read; operators above 100 % find theirs in a cache",
    )
    return table
