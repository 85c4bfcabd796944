"""`rushlight llm bench`: how fast a model reads prompts and writes text."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rushlight.cli.common import (
    ModelArgument,
    ThreadsOption,
    TracebackOption,
    console,
    help_text,
    reports_errors,
)
from rushlight.cli.llm.common import CacheOption, KvOption
from rushlight.errors import Code, RunError

if TYPE_CHECKING:
    from rushlight.llm.runner import Runner

NAME = "bench"
_USUAL_TEXTS = 32  # that a runner computes at once unless it is told
HELP = help_text(
    "Measure tokens a second: of a prompt (prefill), and of the text after it (decode), at one or "
    "more lengths of the text before.",
    (
        "rushlight llm bench m.pte",
        "rushlight llm bench m.pte --prompt 512 --output 64 --context 0,2048 --threads 2",
        "rushlight llm bench m.pte --sessions 8 --json",
    ),
)


@reports_errors
def main(
    model: ModelArgument,
    prompt: Annotated[int, typer.Option("--prompt", help="Tokens of the prompt.")] = 512,
    output: Annotated[int, typer.Option("--output", help="Tokens to generate.")] = 64,
    context: Annotated[
        str, typer.Option("--context", help="Tokens before the prompt; several with commas.")
    ] = "0",
    sessions: Annotated[int, typer.Option("--sessions", help="Texts at once.")] = 1,
    repeat: Annotated[int, typer.Option("--repeat", help="How often; the median counts.")] = 3,
    kv: KvOption = "auto",
    cache_limit: CacheOption = None,
    threads: ThreadsOption = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="Write the steps of the last row to this ETDump."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.inspect.text import table_of
    from rushlight.llm.loading import load

    for name, value in (("prompt", prompt), ("output", output), ("sessions", sessions)):
        if value < 1:
            raise RunError(f"--{name} {value}: give 1 or more", code=Code.INVALID_ARGUMENT)
    begin = time.perf_counter()
    texts = sessions if sessions > _USUAL_TEXTS else None
    runner = load(
        model, threads=threads, kv=kv, cache_limit=cache_limit, texts=texts, trace=trace is not None
    )
    load_ms = (time.perf_counter() - begin) * 1e3
    rows = []
    for before in _lengths(context):
        if trace is not None:
            runner.trace.clear()
        rows.append(measure(runner, before, prompt, output, sessions, max(1, repeat)))
    if trace is not None:
        runner.trace.save(trace)
    if as_json:
        typer.echo(json.dumps({"load_ms": load_ms, "kv": runner.cache_type, "rows": rows}))
        return
    table = table_of("", "context", "prefill tok/s", "decode tok/s", "first token ms", "cache MB")
    for row in rows:
        table.add_row(
            str(row["context"]),
            f"{row['prefill']:.1f}",
            f"{row['decode']:.1f}",
            f"{row['first_token_ms']:.1f}",
            f"{row['cache_bytes'] / 1e6:.1f}",
        )
    console().print(table)
    console().print(f"load {load_ms:.1f} ms, kv {runner.cache_type}, sessions {sessions}")


def _lengths(text: str) -> list[int]:
    try:
        lengths = [int(part) for part in text.split(",")]
    except ValueError:
        lengths = [-1]
    if min(lengths) < 0:
        raise RunError(
            f"--context {text!r}: give numbers of tokens, such as 0,2048",
            code=Code.INVALID_ARGUMENT,
        )
    return lengths


def measure(
    runner: Runner, before: int, prompt: int, output: int, sessions: int, repeat: int
) -> dict[str, Any]:
    """Medians of some runs: tokens a second of all sessions together, and the time to the first.

    Args:
        runner: the model.
        before: tokens that are in the cache when the clock starts.
        prompt: tokens of each session's prompt.
        output: tokens that each generates.
        sessions: how many generate at once.
        repeat: how many runs.

    Raises:
        RunError: the tokens do not fit the context or the cache.
    """
    runs = [_run(runner, before, prompt, output, sessions, turn) for turn in range(repeat)]
    middle = {name: sorted(run[name] for run in runs)[repeat // 2] for name in runs[0]}
    return {"context": before, **middle}


def _tokens(runner: Runner, count: int, salt: int) -> list[int]:
    """Tokens that do not repeat, so that nothing is guessed or found in the cache."""
    stride = 7919 + 2 * salt
    return [(salt * 104729 + i * stride) % runner.vocabulary_size for i in range(count)]


def _run(
    runner: Runner, before: int, prompt: int, output: int, sessions: int, turn: int
) -> dict[str, float]:
    options: dict[str, Any] = {"temperature": 0.0, "ignore_eos": True, "guesses": 0}
    streams = []
    texts = [runner.session() for _ in range(sessions)]
    for i, session in enumerate(texts):
        if before:
            earlier = _tokens(runner, before, 1 + i + turn * sessions)
            session.generate(earlier, max_tokens=1, **options)
    begin = time.perf_counter()
    for i, session in enumerate(texts):
        new = _tokens(runner, prompt, 101 + i + turn * sessions)
        streams.append(session.stream(new, max_tokens=output, **options))
    # Whoever reads drives all; a reader that is far ahead lets the others catch up.
    open_streams = list(streams)
    first, made = 0.0, 0
    while open_streams:
        for stream in list(open_streams):
            if next(stream, None) is None:
                open_streams.remove(stream)
        counts = [] if first else [stream.statistics.output_tokens for stream in streams]
        if counts and min(counts) > 0:
            first, made = time.perf_counter(), sum(counts)
    end = time.perf_counter()
    return {
        "prefill": sessions * prompt / (first - begin),
        "decode": (sessions * output - made) / (end - first) if end > first else 0.0,
        "first_token_ms": streams[0].statistics.first_token * 1e3,
        "cache_bytes": float(runner.cache_bytes),
    }
