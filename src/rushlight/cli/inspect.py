"""`rushlight inspect`: the contents of a program, as tables, a page or JSON."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rushlight.cli.common import (
    ModelArgument,
    TracebackOption,
    console,
    help_text,
    reports_errors,
)
from rushlight.errors import Code, Error
from rushlight.files import write_text

NAME = "inspect"
HELP = help_text(
    "Show methods, signatures, memory plan, operators, constants and bytes of a program.",
    (
        "rushlight inspect model.pte",
        "rushlight inspect model.pte --html report.html",
        "rushlight inspect model.pte --json",
    ),
)


@reports_errors
def main(
    model: ModelArgument,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="PAGE.html",
            help="Write a page with the memory plan over time and the graph, to explore.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON instead of tables.")
    ] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.inspect import report_of

    report = report_of(model)
    if html is not None:
        from rushlight.inspect.html import page

        text = page(report)
        try:
            write_text(html, text)
        except OSError as error:
            raise Error(
                f"cannot write {html!r}: {error.strerror}; check the path",
                code=Code.ACCESS_FAILED,
            ) from error
        console(stderr=as_json).print(f"wrote {html} ({len(text):,} bytes)", markup=False)
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=1))
    elif html is None:
        from rushlight.inspect.terminal import details

        out = console()
        for part in details(report):
            out.print(part)
