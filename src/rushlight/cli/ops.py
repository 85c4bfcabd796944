"""`rushlight ops`: the operators that have a kernel, and the dtypes that each takes."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import TracebackOption, console, help_text, reports_errors
from rushlight.errors import Code, Error

if TYPE_CHECKING:
    from rich.table import Table

    from rushlight.ir.kernels import Kernel, Manifest

NAME = "ops"
HELP = help_text(
    "List the operators that this runtime has a kernel for: what export accepts. NAME is an "
    "operator, or a part of its name; without it all are listed.",
    (
        "rushlight ops conv",
        "rushlight ops --dtype float16",
        "rushlight ops aten::add.out --json",
    ),
)


@reports_errors
def main(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help='"aten::add.out", or a part: "add".')
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", metavar="DTYPE", help="Only what takes tensors of this dtype."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the list as JSON, as export's ops_manifest.")
    ] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.ir.kernels import Manifest, manifest

    have = manifest()
    listed = _chosen(have, name, dtype)
    if as_json:
        chosen = Manifest({kernel.name: kernel for kernel in listed}, have.classes)
        typer.echo(json.dumps(chosen.to_json(), indent=1))
        return
    out = console()
    for family, kernels in groupby(listed, key=lambda kernel: kernel.family):
        out.print(_table(family, list(kernels), have))
    out.print(f"{len(listed)} operators", style="dim")


def _chosen(have: Manifest, name: str | None, dtype: str | None) -> list[Kernel]:
    """The kernels whose names contain `name` and that take `dtype`, by family.

    Raises:
        Error: `dtype` is not a dtype, or no kernel is left.
    """
    if dtype is not None and dtype not in have.classes["any"]:
        dtypes = ", ".join(sorted(have.classes["any"]))
        raise Error(f"{dtype!r} is not a dtype; there are {dtypes}", code=Code.INVALID_ARGUMENT)
    kernels = [
        kernel
        for kernel in sorted(have, key=lambda kernel: (kernel.family, kernel.name))
        if (name is None or name in kernel.name)
        and (dtype is None or kernel.dtypes is None or dtype in kernel.dtypes)
    ]
    if not kernels:
        what = [] if name is None else [f"{name!r} in its name"]
        what += [] if dtype is None else [f"dtype {dtype}"]
        raise Error(
            f"no operator with {' and '.join(what)}; `rushlight ops` lists all, and "
            f"docs/operators.md says which are decomposed",
            code=Code.NOT_FOUND,
        )
    return kernels


def _table(family: str, kernels: list[Kernel], have: Manifest) -> Table:
    from rich.text import Text

    from rushlight.inspect.text import table_of
    from rushlight.ir.executorch_kernels import NAMES

    columns = ("operator", "dtypes", "library", "ExecuTorch", "set")
    table = table_of(family, *columns, drop=(4, 2, 3))
    for kernel in kernels:
        dtypes = [have.class_text(kernel.dtypes)] if kernel.dtypes is not None else []
        dtypes += [f"{a}: {have.class_text(d)}" for a, d in kernel.arguments.items()]
        runs = Text("yes", style="dim") if kernel.name in NAMES else Text("no", style="yellow")
        table.add_row(kernel.name, "; ".join(dtypes), kernel.library, runs, kernel.group)
    return table
