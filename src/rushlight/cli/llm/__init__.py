"""`rushlight llm chat | bench | perplexity`: language models."""

from __future__ import annotations

import typer

from rushlight.cli.llm import bench, chat, perplexity

NAME = "llm"
HELP = "Run language models: chat, measure speed and perplexity."
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

for command in (chat, bench, perplexity):
    app.command(name=command.NAME, help=command.HELP)(command.main)
