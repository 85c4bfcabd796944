"""The command line: `rushlight export | doctor | run | bench | profile | inspect | ops | ...`.

Only `export`, `doctor` and `recipes` import torch, and each command imports what it needs when it
runs.
"""

from __future__ import annotations

import typer

from rushlight.cli import bench, doctor, export, inspect, new_backend, ops, profile, recipes, run

app = typer.Typer(
    name="rushlight",
    help="Take a PyTorch model ahead of time to one small file; run it without Python.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # the examples keep their lines
    pretty_exceptions_enable=False,
)
for command in (export, doctor, recipes, run, bench, profile, inspect, ops, new_backend):
    app.command(name=command.NAME, help=command.HELP)(command.main)

__all__ = ["app"]
