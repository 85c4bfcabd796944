"""`rushlight llm embed`: texts as vectors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

import typer

from rushlight.cli.common import (
    ModelArgument,
    ThreadsOption,
    TracebackOption,
    help_text,
    reports_errors,
)
from rushlight.errors import Code, RunError
from rushlight.files import replacing

NAME = "embed"
HELP = help_text(
    "Write the embeddings of texts: a line of JSON for each, or all as a NumPy file. Without TEXT, "
    "each line of standard input is a text.",
    (
        "rushlight llm embed m.pte 'a lamp' 'a light'",
        "rushlight llm embed m.pte -o lines.npy < lines.txt",
    ),
)
_AT_ONCE = 256  # texts that are read before their lines are written


@reports_errors
def main(
    model: ModelArgument,
    text: Annotated[list[str] | None, typer.Argument(metavar="TEXT...")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE.npy", help="A NumPy file.")
    ] = None,
    normalize: Annotated[
        bool, typer.Option("--normalize/--no-normalize", help="Scale vectors to length 1.")
    ] = True,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that are longer than the context.")
    ] = False,
    threads: ThreadsOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    import numpy as np

    from rushlight.llm.loading import load

    if output is not None and not output.endswith(".npy"):
        raise RunError(
            f"--output {output!r}: give a name that ends in .npy, or leave it out for JSON",
            code=Code.INVALID_ARGUMENT,
        )
    runner = load(model, threads=threads)
    parts = []
    for texts in _batches(text or _lines()):
        vectors = runner.embed(texts, normalize=normalize, truncate=truncate)
        if output is not None:
            parts.append(vectors)
            continue
        for vector in vectors:
            typer.echo(json.dumps([float(str(number)) for number in vector]))
    if output is None:
        return
    try:
        with replacing(output) as file:
            np.save(file, np.concatenate(parts) if parts else runner.embed([]))
    except OSError as error:
        raise RunError(f"cannot write {output!r}: {error}", code=Code.ACCESS_FAILED) from None


def _lines() -> Iterator[str]:
    for line in sys.stdin.buffer:
        yield line.decode("utf-8", "replace").rstrip("\r\n")


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    left = iter(texts)
    while batch := list(islice(left, _AT_ONCE)):
        yield batch
