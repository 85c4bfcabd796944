"""`rushlight explain`: what a report of a failure means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rushlight.cli.common import TracebackOption, help_text, reports_errors

NAME = "explain"
HELP = help_text(
    "Say what failed on a device, from the report that it left: the operator, its arguments, the "
    "lines of Python, and what ran before. Needs no PyTorch. Reports are written by "
    "`rushlight_runner --failure-report`, rl.load(failure_report=…), and the C++ runtime.",
    (
        "rushlight explain report.bin model.pte",
        "rushlight explain report.bin model.pte --json",
        "rushlight explain report.bin",
    ),
)


@reports_errors
def main(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="The report.")],
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL.pte",
            help="The program that failed; without it, names and lines are not known.",
        ),
    ] = None,
    etrecord: Annotated[
        Path | None,
        typer.Option(
            "--etrecord", metavar="FILE", help="A record of the export, for whole stacks of lines."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.inspect.explain import explain
    from rushlight.inspect.trace.origins import RecordOrigins

    origins = RecordOrigins(etrecord) if etrecord is not None else None
    explanation = explain(report, model, origins)
    typer.echo(json.dumps(explanation.to_json()) if as_json else str(explanation))
