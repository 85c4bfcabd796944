"""Options that the commands for language models share."""

from __future__ import annotations

from typing import Annotated

import typer

KvOption = Annotated[
    str, typer.Option("--kv", help="What keys and values are stored in: float32, float16, int8.")
]
CacheOption = Annotated[
    int | None, typer.Option("--cache-limit", help="The most bytes for keys and values.")
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="PATH",
        help="Of a program without one: a folder, tokenizer.json or tokenizer.model.",
    ),
]
