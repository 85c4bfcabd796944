"""`rushlight test`: the test cases of a bundled program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
    DataOption,
    FormOption,
    ThreadsOption,
    TracebackOption,
    console,
    help_text,
    reports_errors,
)

if TYPE_CHECKING:
    from rich.table import Table

    from rushlight.runtime.measures import CaseResult

NAME = "test"
HELP = help_text(
    "Run the test cases of a bundled program and compare its outputs with those that are expected. "
    "Exits with 1 if any departs. Needs no PyTorch.",
    (
        "rushlight test model.bpte",
        "rushlight test model.bpte --method forward --case 2 --atol 1e-3",
        "rushlight test model.bpte --json",
    ),
)


@reports_errors
def main(
    model: Annotated[
        str, typer.Argument(metavar="MODEL.bpte", help="The bundled program; see rl.bundle.")
    ],
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", metavar="NAME", help="Test this method; all by default."),
    ] = None,
    case: Annotated[
        str | None,
        typer.Option("--case", metavar="CASE", help="One case, by its index or its name."),
    ] = None,
    rtol: Annotated[
        float | None, typer.Option("--rtol", min=0, help="In place of the file's tolerance.")
    ] = None,
    atol: Annotated[
        float | None, typer.Option("--atol", min=0, help="In place of the file's tolerance.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    threads: ThreadsOption = None,
    backend: FormOption = None,
    data: DataOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.bundled.bundle import load_bundle

    bundle = load_bundle(model)
    results = bundle.test(
        method=method,
        case=int(case) if case is not None and case.isdecimal() else case,
        rtol=rtol,
        atol=atol,
        backend=backend,
        data=data,
        threads=threads,
    )
    failed = sum(not result.passed for result in results)
    if as_json:
        print(json.dumps({"passed": failed == 0, "cases": [r.as_dict() for r in results]}))
    else:
        _show(results, failed)
    if failed:
        raise typer.Exit(1)


def _show(results: Sequence[CaseResult], failed: int) -> None:
    out = console()
    out.print(_table(results))
    for result in results:
        if not result.passed:
            out.print(f"{_label(result)}: {result.message}", markup=False, soft_wrap=True)
    text = f"{failed} of {len(results)} test cases failed" if failed else "all passed"
    out.print(text, style="red" if failed else None)


def _table(results: Sequence[CaseResult]) -> Table:
    from rich.text import Text

    from rushlight.inspect.text import table_of

    columns = ("case", "result", "greatest error", "relative", "where", "NaN")
    table = table_of("", *columns, right=(2, 3, 5), drop=(5, 3))
    for result in results:
        table.add_row(*(Text(cell) for cell in (_label(result), _verdict(result), *_row(result))))
    return table


def _label(result: CaseResult) -> str:
    return f"{result.method} {result.index}" + (f" {result.name}" if result.name else "")


def _verdict(result: CaseResult) -> str:
    if not result.passed:
        return "failed"
    return "passed" if result.compared else "ran, nothing expected"


def _row(result: CaseResult) -> tuple[str, str, str, str]:
    if not result.compared:
        return "", "", "", ""
    where = ""
    if result.got is not None:
        where = f"output {result.output}" + (f" {list(result.place)}" if result.place else "")
    return f"{result.absolute:.3g}", f"{result.relative:.3g}", where, str(result.nan)
