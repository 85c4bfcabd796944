"""The command line: `rushlight export | doctor | run | test | bench | inspect | ...`.

`export`, `doctor`, `recipes`, `accuracy` and `debug` import torch, and so do `bench --compare` and
`diff` of a model that is not a program yet; each command imports its modules when it runs.
"""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from rushlight.cli import (
    accuracy,
    bench,
    debug,
    diff,
    doctor,
    explain,
    export,
    inspect,
    llm,
    new_backend,
    new_op,
    ops,
    profile,
    recipes,
    run,
    test,
    trace,
)
from rushlight.cli.common import takes_kernels
from rushlight.cli.selective import build, size

HELP = "Take a PyTorch model ahead of time to one small file; run it without Python."
app = typer.Typer(
    name="rushlight",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # the examples keep their lines
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rushlight {metadata.version('rushlight')}")
        raise typer.Exit


@app.callback(help=HELP)
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None: ...


COMMANDS = (
    *(export, doctor, recipes, accuracy, debug),
    *(run, test, bench, profile, trace, explain, inspect, diff, size, build, ops),
    *(new_backend, new_op),
)
RUN_PROGRAMS = (export, debug, run, test, bench, profile, trace)
for command in COMMANDS:
    main = takes_kernels(command.main) if command in RUN_PROGRAMS else command.main
    app.command(name=command.NAME, help=command.HELP)(main)
app.add_typer(llm.app, name=llm.NAME, help=llm.HELP)

__all__ = ["app"]
