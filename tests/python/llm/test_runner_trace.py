"""Traces of a language model's runner: every step, with the operators inside."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import rushlight.llm
from rushlight.cli import app
from rushlight.errors import RunError
from rushlight.inspect import Inspector
from rushlight.inspect.trace.events import Event, EventBlock
from rushlight.llm.runner import Runner
from rushlight.runtime import TraceOptions

PROMPT = "the lamp was"
OPTIONS: dict[str, Any] = {"max_tokens": 12, "temperature": 0, "ignore_eos": True}


def runs(inspector: Inspector) -> list[EventBlock]:
    return [block for block in inspector.event_blocks if block.name == "Execute"]


def opened(runner: Runner, program: Path, folder: Path) -> Inspector:
    runner.trace.save(folder / "tiny.etdp")
    return Inspector(folder / "tiny.etdp", program=program)


def attention(block: EventBlock) -> list[Event]:
    events = (event for event in block.events if event.is_delegated_op)
    return [e for e in events if e.op_types == ["rushlight.cached_attention.default"]]


def test_every_step_is_recorded(program: Path, tmp_path: Path) -> None:
    runner = rushlight.llm.load(program, trace=True)
    untraced = rushlight.llm.load(program)
    reply = runner.generate(PROMPT, **OPTIONS)
    assert reply.tokens == untraced.generate(PROMPT, **OPTIONS).tokens
    inspector = opened(runner, program, tmp_path)
    assert inspector.mismatches == [] and runner.trace.dropped == (0, 0)
    [block] = runs(inspector)
    assert block.method == "step"
    [layer] = attention(block)
    assert layer.perf_data is not None and len(layer.perf_data.raw) == reply.statistics.steps
    assert "modeling_llama.py" in next(iter(layer.stack_traces.values()), "")
    runner.trace.clear()
    assert not runs(opened(runner, program, tmp_path))


def test_values(program: Path) -> None:
    runner = rushlight.llm.load(program, kv="float32", trace=TraceOptions(values="outputs"))
    prompt = runner.encode(PROMPT)
    token = runner.generate(prompt, max_tokens=1, temperature=0).tokens[0]
    dump, values = runner.trace.to_bytes()
    [block] = runs(Inspector(etdump_data=dump, debug_buffer=values))
    [logits] = block.run_output
    assert logits.shape[-1] == runner.vocabulary_size and int(np.argmax(logits[-1])) == token


def test_many_threads_and_little_room(program: Path) -> None:
    runner = rushlight.llm.load(program, trace=TraceOptions(bytes=1 << 16))
    wanted = runner.generate(PROMPT, **OPTIONS).tokens
    texts: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: texts.append(runner.generate(PROMPT, **OPTIONS).tokens))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        dump, _ = runner.trace.to_bytes()
        assert runs(Inspector(etdump_data=dump))
    for _ in range(20):
        runner.generate(PROMPT, **OPTIONS)
    assert texts == [wanted] * 8 and runner.trace.dropped[0] > 0


def test_nothing_is_traced(program: Path) -> None:
    runner = rushlight.llm.load(program)
    for read in (runner.trace.to_bytes, runner.trace.clear, lambda: runner.trace.dropped):
        with pytest.raises(RunError, match="nothing is traced: load the program with trace=True"):
            read()
    with pytest.raises(RunError, match="bytes=7: give 4096 at least"):
        rushlight.llm.load(program, trace=TraceOptions(bytes=7))


def test_command(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "bench.etdp"
    command = ["llm", "bench", str(program), "--prompt", "8", "--output", "4", "--repeat", "2"]
    told = CliRunner().invoke(app, [*command, "--context", "0,64", "--trace", str(path)])
    assert told.exit_code == 0, told.output
    assert runs(Inspector(path, program=program))
    page = tmp_path / "page.html"
    told = CliRunner().invoke(
        app, ["inspect", str(program), "--trace", str(path), "--html", str(page)]
    )
    assert told.exit_code == 0 and "cached_attention" in page.read_text()
