"""Options that the commands for language models share."""

from __future__ import annotations

from typing import Annotated

import typer

from rushlight.errors import Code, RunError
from rushlight.files import open_file

KvOption = Annotated[
    str,
    typer.Option(
        "--kv", help="What keys and values are stored in: float32, float16, int8 (the default)."
    ),
]
CacheOption = Annotated[
    int | None, typer.Option("--cache-limit", help="The most bytes for keys and values.")
]
TemplateOption = Annotated[
    str | None,
    typer.Option(
        "--chat-template",
        metavar="PATH",
        help="Of a program without one: a file with a Jinja template.",
    ),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="PATH",
        help="Of a program without one: a folder, tokenizer.json or tokenizer.model.",
    ),
]


def read_template(path: str | None) -> str | None:
    """The text of a chat template.

    Args:
        path: of its file; None for none.

    Raises:
        RunError: it cannot be read.
    """
    if path is None:
        return None
    try:
        with open_file(path) as file:
            return file.read().decode()
    except (OSError, ValueError) as error:
        raise RunError(
            f"--chat-template: cannot read {path}: {error}", code=Code.ACCESS_FAILED
        ) from None
