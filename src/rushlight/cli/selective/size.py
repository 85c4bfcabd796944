"""`rushlight size`: what a program will need of a runtime, before one is built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rushlight.cli.common import TracebackOption, console, help_text, reports_errors

NAME = "size"
HELP = help_text(
    "Show what programs need of a runtime made for them alone by `rushlight build`: operators, "
    "backends, code, memory.",
    ("rushlight size model.pte", "rushlight size a.pte b.pte --json"),
)


@reports_errors
def main(
    programs: Annotated[
        list[Path], typer.Argument(metavar="MODEL.pte...", help="The program files.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON instead of tables.")
    ] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rich.table import Table

    from rushlight.selective.estimate import needs_of

    needs = needs_of(programs)
    if as_json:
        typer.echo(json.dumps(needs.to_json(), indent=1))
        return
    uses, out = needs.uses, console()
    rows = [
        ("operators", len(uses.operators), ", ".join(sorted(uses.operators))),
        ("with kernels of yours", len(uses.own), ", ".join(sorted(uses.own))),
        ("dtypes", len(uses.dtypes), ", ".join(sorted(uses.dtypes))),
        ("backends", len(uses.backends), ", ".join(sorted(uses.backends))),
        ("engine nodes", len(uses.nodes), ", ".join(sorted(uses.nodes))),
    ]
    table = Table(box=None, show_header=False)
    for label, count, names in rows:
        if count:
            table.add_row(label, str(count), names)
    code = ", ".join(f"{part} {size:,}" for part, size in needs.code.items())
    table.add_row("code", f"{sum(needs.code.values()):,}", f"bytes, about: {code} ({needs.isa})")
    for name, methods in needs.memory.items():
        table.add_row("file", f"{needs.file[name]:,}", f"bytes: {name}")
        for method, memory in methods.items():
            parts = ", ".join(f"{kind} {size:,}" for kind, size in memory.items() if size)
            table.add_row("memory", "", f"bytes of {method}: {parts}")
    out.print(table)
