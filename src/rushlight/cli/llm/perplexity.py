"""`rushlight llm perplexity`: how well a model predicts a text."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

import typer

from rushlight.cli.common import (
    ModelArgument,
    ThreadsOption,
    TracebackOption,
    console,
    help_text,
    reports_errors,
)
from rushlight.cli.llm.common import CacheOption, KvOption, TokenizerOption
from rushlight.errors import Code, RunError

NAME = "perplexity"
HELP = help_text(
    "Print the perplexity of a text: the exponential of the mean loss of its tokens. The text is "
    "cut into windows as long as the context; of each but the first, the first half is given and "
    "not counted.",
    (
        "rushlight llm perplexity m.pte -f text.txt",
        "rushlight llm perplexity m.pte -f text.txt --context 512 --kv int8",
    ),
)


@reports_errors
def main(
    model: ModelArgument,
    file: Annotated[str, typer.Option("--file", "-f", metavar="TEXT", help="A file of text.")],
    context: Annotated[
        int | None, typer.Option("--context", help="Tokens of a window; the model's by default.")
    ] = None,
    kv: KvOption = "auto",
    cache_limit: CacheOption = None,
    tokenizer: TokenizerOption = None,
    threads: ThreadsOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.llm.loading import load

    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot read {file!r}: {error}", code=Code.ACCESS_FAILED) from None
    runner = load(model, threads=threads, kv=kv, cache_limit=cache_limit, tokenizer=tokenizer)
    window = runner.context if context is None else context
    if not 2 <= window <= runner.context:
        raise RunError(
            f"--context {window}: give from 2 to {runner.context}, the model's context",
            code=Code.INVALID_ARGUMENT,
        )
    losses = [-p for p in windowed_logprobs(runner.score, runner.encode(text), window)]
    mean = sum(losses) / len(losses)
    console().print(
        f"perplexity {math.exp(mean):.4f} ({len(losses)} tokens, kv {runner.cache_type})"
    )


def windowed_logprobs(
    score: Callable[[list[int]], list[float]], tokens: list[int], window: int
) -> list[float]:
    """The log probabilities of all tokens but the first, by windows that overlap by half.

    Args:
        score: gives the log probabilities of a window's tokens but its first.
        tokens: the text.
        window: tokens of a window.

    Raises:
        RunError: the text has fewer than 2 tokens.
    """
    if len(tokens) < 2:
        raise RunError(
            f"the text has {len(tokens)} tokens: give one with 2 at least",
            code=Code.INVALID_ARGUMENT,
        )
    logprobs = score(tokens[:window])
    stride = max(1, window // 2)
    end = min(window, len(tokens))
    while end < len(tokens):
        new = min(stride, len(tokens) - end)
        part = tokens[end + new - window : end + new]
        logprobs += score(part)[-new:]
        end += new
    return logprobs
