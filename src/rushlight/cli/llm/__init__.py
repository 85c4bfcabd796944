"""`rushlight llm export | adapter | chat | serve | embed | bench | perplexity`: language models."""

from __future__ import annotations

import typer

from rushlight.cli.common import takes_kernels
from rushlight.cli.llm import adapter, bench, chat, embed, export, perplexity, serve

NAME = "llm"
HELP = "Export and run language models: chat, serve, embed texts, measure speed and perplexity."
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

for command in (export, adapter, chat, serve, embed, bench, perplexity):
    main = command.main if command is adapter else takes_kernels(command.main)
    app.command(name=command.NAME, help=command.HELP)(main)
