"""`rushlight build`: a runtime with only the code that given programs use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
    TracebackOption,
    console,
    help_text,
    reports_errors,
)

if TYPE_CHECKING:
    from rich.table import Table

    from rushlight.selective.by_operator import Row

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
LEAN = ("tracing", "failure-reports")
Name = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="NAME",
        help="The name of library, header, namespace and package; by default the folder's.",
    ),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="host, a toolchain file of CMake, or a name that Rushlight knows: aarch64-linux, "
        "riscv64-linux, cortex-m55.",
    ),
]
Isa = Annotated[
    str,
    typer.Option(
        "--isa", metavar="NAME", help="One instruction set, such as avx2; all by default."
    ),
]


@reports_errors
def main(
    programs: Annotated[
        list[Path], typer.Argument(metavar="MODEL.pte...", help="The programs that it shall run.")
    ],
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Gets lib/, include/, size.json.")
    ],
    name: Name = "",
    target: Target = "host",
    isa: Isa = "all",
    embed: Annotated[
        bool, typer.Option("--embed", help="Put the programs into the library, as constants.")
    ] = False,
    no_module: Annotated[
        bool, typer.Option("--no-module", help="Without the class Module, which needs files.")
    ] = False,
    c: Annotated[
        bool, typer.Option("--c", help="With the C interface of modules, rushlight.h.")
    ] = False,
    lean: Annotated[
        bool, typer.Option("--lean", help="Without tracing and failure reports.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="How many compilers run at once.")
    ] = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.selective.build import build
    from rushlight.selective.selection import Options

    options = Options(name or out.resolve().name, isa, embed, not no_module, c)
    rows = build(programs, options, out, target, jobs, LEAN if lean else ())
    screen = console()
    screen.print(_table(rows))
    total = sum(row.bytes for row in rows)
    screen.print(
        f"{out}: library {options.name}; a program that loads and runs a method from memory links "
        f"{total:,} bytes of it",
        markup=False,
        soft_wrap=True,
    )


def _table(rows: Sequence[Row]) -> Table:
    from rich.table import Table

    table = Table(box=None, title_justify="left")
    for heading in ("operator", "code", "constants"):
        table.add_column(heading, justify="left" if heading == "operator" else "right")
    for shared in (False, True):
        of_kind = [row for row in rows if row.shared == shared]
        if shared:
            table.add_section()
            table.add_row("shared by operators", "", "")
        for row in of_kind[:_SHOWN]:
            table.add_row(row.name, f"{row.code:,}", f"{row.constants:,}")
        rest = of_kind[_SHOWN:]
        if rest:
            code, constants = sum(r.code for r in rest), sum(r.constants for r in rest)
            table.add_row(f"{len(rest)} more, in size.json", f"{code:,}", f"{constants:,}")
    return table
