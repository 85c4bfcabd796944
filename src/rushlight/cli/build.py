"""`rushlight build`: a runtime with only the code that given programs use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rushlight.cli.common import (
    TracebackOption,
    console,
    help_text,
    reports_errors,
)

NAME = "build"
HELP = help_text(
    "Build a C++ runtime that has the operators of some programs and no others: a static library, "
    "a header and a CMake package. Needs CMake and a C++17 compiler.",
    (
        "rushlight build model.pte -o app",
        "rushlight build a.pte b.pte -o app --name runtime --isa avx2 --embed",
        "rushlight build model.pte -o app --target aarch64-linux",
    ),
)
_SHOWN = 20


@reports_errors
def main(
    programs: Annotated[
        list[Path], typer.Argument(metavar="MODEL.pte...", help="The programs that it shall run.")
    ],
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Gets lib/, include/, size.json.")
    ],
    name: Annotated[
        str,
        typer.Option(
            help="The name of library, header, namespace and package; by default the folder's."
        ),
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="host, a CMake toolchain file, or a name that "
            "Rushlight knows, such as aarch64-linux.",
        ),
    ] = "host",
    isa: Annotated[
        str, typer.Option(metavar="NAME", help="One instruction set, such as avx2; all by default.")
    ] = "all",
    embed: Annotated[
        bool, typer.Option("--embed", help="Put the programs into the library, as constants.")
    ] = False,
    no_module: Annotated[
        bool,
        typer.Option("--no-module", help="Without the class Module: for devices without files."),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="How many compilers run at once.")
    ] = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rich.table import Table

    from rushlight.selective.build import build
    from rushlight.selective.selection import Options

    options = Options(name or out.resolve().name, isa, embed, not no_module)
    parts = build(programs, options, out, target, jobs)
    table = Table(box=None, title_justify="left")
    for heading in ("part", "code", "constants"):
        table.add_column(heading, justify="left" if heading == "part" else "right")
    for part in parts[:_SHOWN]:
        table.add_row(part.name, f"{part.code:,}", f"{part.constants:,}")
    rest = parts[_SHOWN:]
    if rest:
        code, constants = sum(p.code for p in rest), sum(p.constants for p in rest)
        table.add_row(f"{len(rest)} more, in size.json", f"{code:,}", f"{constants:,}")
    screen = console()
    screen.print(table)
    total = sum(part.bytes for part in parts)
    screen.print(
        f"{out}: library {options.name}; a program that loads and runs a method from memory links "
        f"{total:,} bytes of it",
        markup=False,
        soft_wrap=True,
    )
