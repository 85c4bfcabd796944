"""`rushlight llm export | chat | bench | perplexity`: language models."""

from __future__ import annotations

import typer

from rushlight.cli.llm import bench, chat, export, perplexity

NAME = "llm"
HELP = "Export and run language models: chat, measure speed and perplexity."
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

for command in (export, chat, bench, perplexity):
    app.command(name=command.NAME, help=command.HELP)(command.main)
