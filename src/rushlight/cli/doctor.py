"""`rushlight doctor`: every blocker of a model, with its line and a rewrite."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
    TracebackOption,
    console,
    help_text,
    reports_errors,
    write_output,
)

if TYPE_CHECKING:
    from rich.table import Table

    from rushlight.doctor import Diagnosis

NAME = "doctor"
HELP = help_text(
    "List everything that keeps a model from being exported, each with its line of Python and a "
    "rewrite, and what a program would do otherwise than the model. MODEL is what `rushlight "
    "export` takes. Exits with 1 if it finds anything.",
    (
        "rushlight doctor model.py:build",
        'rushlight doctor model.py:build --dynamic "x:0=1..8"',
        "rushlight doctor model.py:build --html report.html",
        "rushlight doctor model.py:build --json",
    ),
)


@reports_errors
def main(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="model.py:build, or model.pt2")],
    dynamic: Annotated[
        list[str] | None,
        typer.Option(
            "--dynamic", metavar="INPUT:DIM=MIN..MAX", help="A size that may vary, as for export."
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="PAGE.html",
            help="Write a page with the findings, the code, and the graphs that can be captured.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.cli.target import read_target
    from rushlight.doctor import examine

    with contextlib.redirect_stdout(sys.stderr):  # what the user's file prints is no finding
        target = read_target(model)
    methods = target.model if isinstance(target.model, dict) else {"forward": target.model}
    shapes = target.dynamic_shapes(dynamic or [])
    diagnoses = {
        name: examine(one, target.args, target.kwargs, dynamic_shapes=shapes)
        for name, one in methods.items()
    }
    if html is not None:
        from rushlight.doctor import report_of_diagnoses
        from rushlight.inspect.html import page

        text = page(report_of_diagnoses(Path(model.partition(":")[0]).name, diagnoses))
        write_output(html, text)
        console(stderr=json).print(f"wrote {html} ({len(text):,} bytes)", markup=False)
    if json:
        import json as encoder

        print(encoder.dumps({name: d.to_json() for name, d in diagnoses.items()}, indent=2))
    else:
        for name, diagnosis in diagnoses.items():
            _show(name, diagnosis)
    if any(d.findings for d in diagnoses.values()):
        raise typer.Exit(1)


def _show(name: str, diagnosis: Diagnosis) -> None:
    from rich.text import Text

    out = console()
    if diagnosis.findings:
        out.print(_table(diagnosis))
    n, others = len(diagnosis.blockers), len(diagnosis.findings) - len(diagnosis.blockers)
    if n:
        out.print(Text(f"{name}: {_things(n)} in the way", style="red"))
        return
    if others:
        told = f"{name}: it exports, but {_things(others)} not as in Python"
        out.print(Text(told, style="yellow"))
    else:
        out.print(Text(f"{name}: nothing is in the way", style="green"))
    if diagnosis.signature:
        out.print(Text(f"proven: {diagnosis.signature}"))


def _things(n: int) -> str:
    return "1 thing is" if n == 1 else f"{n} things are"


def _table(diagnosis: Diagnosis) -> Table:
    from rich.text import Text

    from rushlight.inspect.fit import FittingTable

    table = FittingTable(show_lines=True)
    for column in ("what", "where and why", "what to do"):
        table.add_column(column, overflow="fold")
    for finding in diagnosis.findings:
        style = "red" if finding.blocks else "yellow"
        where = f"{finding.place}\n" if finding.place else ""
        table.add_row(
            Text(finding.kind, style=style),
            Text(f"{where}{finding.problem}"),
            Text(f"{finding.advice}\n{finding.page}"),
        )
    return table
