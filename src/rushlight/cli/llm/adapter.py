"""`rushlight llm adapter`: an adapter (LoRA) of peft becomes a file for a program."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rushlight.cli.common import TracebackOption, help_text, reports_errors

NAME = "adapter"
HELP = help_text(
    "Turn an adapter (LoRA) into a file (.ptd) for the sessions of a program. FOLDER is as "
    "save_pretrained of peft writes it; the program was exported with --adapters.",
    (
        "rushlight llm export SmolLM2-135M-Instruct -o m.pte --quantize 8da4w --adapters 16",
        "rushlight llm adapter sql-lora --base m.pte -o sql.ptd",
        "rushlight llm chat m.pte --adapter sql.ptd",
    ),
)


@reports_errors
def main(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Of peft.")],
    base: Annotated[
        str, typer.Option("--base", metavar="M.PTE", help="The program that it is for.")
    ],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="PATH", help="Default: the folder's name and .ptd."),
    ] = None,
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="float16|float32", help="What it is stored in.")
    ] = "float16",
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.llm.adapters.convert import adapter

    path = output or os.path.basename(os.path.normpath(folder)) + ".ptd"
    adapter(folder, base=base, out=path, dtype=dtype)
    typer.echo(f"wrote {path} ({os.path.getsize(path) / 1e6:.1f} MB)")
