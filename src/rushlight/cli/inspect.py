"""`rushlight inspect`: the contents of a program, as tables, a page or JSON."""

from __future__ import annotations

import json
import math
import warnings
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
    ModelArgument,
    TracebackOption,
    console,
    help_text,
    reports_errors,
    write_output,
)
from rushlight.errors import Code, RunError

if TYPE_CHECKING:
    from rushlight.inspect.report import ProgramReport

NAME = "inspect"
HELP = help_text(
    "Show methods, signatures, memory plan, operators, constants and bytes of a program.",
    (
        "rushlight inspect model.pte",
        "rushlight inspect model.pte --html report.html",
        "rushlight inspect model.pte --html report.html --trace model.etdp",
        "rushlight inspect model.pte --json",
    ),
)
Trace = Annotated[
    str | None,
    typer.Option("--trace", metavar="FILE.etdp", help="Times for the page, or for --json."),
]
Record = Annotated[
    str | None, typer.Option("--etrecord", metavar="FILE", help="Stack traces for the page.")
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--gap",
        metavar="MSE|L1|SNR|cosine",
        help="How far the trace's values are from those of --etrecord. Needs PyTorch.",
    ),
]
Failure = Annotated[
    str | None,
    typer.Option(
        "--failure", metavar="REPORT", help="A failed run's report, whose place the page shows."
    ),
]


@reports_errors
def main(
    model: ModelArgument,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="PAGE.html",
            help="Write a page with the memory plan over time, the graph and where the time "
            "goes, to explore.",
        ),
    ] = None,
    trace: Trace = None,
    etrecord: Record = None,
    gap: Metric = None,
    failure: Failure = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON instead of tables.")
    ] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.inspect import report_of

    report = report_of(model)
    if trace is not None:
        _add_times(report, trace, model)
    if etrecord is not None:
        _add_stacks(report, etrecord)
    if gap is not None:
        _add_gaps(report, gap, trace, etrecord)
    if failure is not None:
        _add_failure(report, failure, model)
    if html is not None:
        from rushlight.inspect.html import page

        text = page(report)
        write_output(html, text)
        console(stderr=as_json).print(f"wrote {html} ({len(text):,} bytes)", markup=False)
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=1))
    elif html is None:
        from rushlight.inspect.terminal import details

        out = console()
        for part in details(report):
            out.print(part)


def _add_times(report: ProgramReport, trace: str, model: str) -> None:
    from rushlight.inspect.trace.inspector import Inspector
    from rushlight.inspect.trace.origins import ProgramOrigins
    from rushlight.inspect.trace.times import times_of
    from rushlight.runtime.source import map_file
    from rushlight.serialize.bundle import program_in

    with warnings.catch_warnings():  # of another program, which is told below
        warnings.simplefilter("ignore", RuntimeWarning)
        origins = ProgramOrigins(program_in(map_file(model)))
        report.times = times_of(Inspector(trace, program=model), origins)
    for times in report.times:
        if times.unknown:
            console(stderr=True).print(
                f"the trace is of another program: {times.unknown[0]}"
                + (f"; {len(times.unknown) - 1} more differ" if len(times.unknown) > 1 else ""),
                markup=False,
            )


def _add_stacks(report: ProgramReport, etrecord: str) -> None:
    from rushlight.inspect.trace.origins import RecordOrigins

    stacks = RecordOrigins(etrecord).stack_traces()
    names = {method.name for method in report.methods}
    report.stacks = {method: some for method, some in stacks.items() if method in names}
    if not report.stacks and stacks:
        console(stderr=True).print(
            f"the record is of another program: it has the methods {', '.join(stacks)}",
            markup=False,
        )


def _recorded(report: ProgramReport) -> str:
    """The method whose graph readers of a record take."""
    names = [method.name for method in report.methods]
    return "forward" if "forward" in names else names[0] if names else ""


def _add_gaps(report: ProgramReport, metric: str, trace: str | None, etrecord: str | None) -> None:
    from rushlight.inspect.model import ValueGap
    from rushlight.inspect.trace.inspector import Inspector

    if trace is None or etrecord is None:
        raise RunError(
            "--gap compares the values of a trace with a record: give --trace FILE.etdp, recorded "
            "with --values all, and --etrecord FILE",
            code=Code.INVALID_ARGUMENT,
        )
    inspector = Inspector(trace, etrecord=etrecord, debug_buffer_path=f"{trace}.values")
    for one in inspector.numeric_gaps(metric):
        value = one.gap[0]
        shown = value if math.isfinite(value) else str(value)
        report.gaps.append(ValueGap(_recorded(report), one.aot_ops[-1], metric, shown))


def _add_failure(report: ProgramReport, failure: str, model: str) -> None:
    from rushlight.inspect.explain import explain
    from rushlight.inspect.model import FailedCall

    told = explain(failure, model)
    for doubt in told.doubts:
        console(stderr=True).print(f"note: {doubt}", markup=False)
    read = told.report
    # Of another program, an instruction may be one that is not here.
    counts = {method.name: len(method.instructions) for method in report.methods}
    at = -1 if read.instruction is None else read.instruction
    at = at if at < counts.get(read.method, 0) else -1
    call = FailedCall(read.method, at, told.place, told.what, told.message, told.why)
    report.failures.append(call)
