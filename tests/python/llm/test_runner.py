"""What callers do wrong, and what nobody expects: an error that says so, or what was asked for, and
the runner goes on."""

from __future__ import annotations

import gc
import json
import multiprocessing
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight.llm
from rushlight.errors import LoadError, RunError
from rushlight.inspect.explain import explain
from rushlight.llm.reply import Piece
from rushlight.llm.runner import Runner
from rushlight.runtime import register_backend, unregister_backend
from rushlight.serialize.pte import read_pte, write_pte

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "llm"
OPTIONS: dict[str, Any] = {"temperature": 0, "ignore_eos": True}
PROMPT = "the lamp was"


@pytest.fixture
def wanted(runner: Runner) -> list[int]:
    """What the model writes."""
    return runner.generate(PROMPT, max_tokens=12, **OPTIONS).tokens


def _goes_on(runner: Runner, wanted: list[int]) -> None:
    assert runner.generate(PROMPT, max_tokens=12, **OPTIONS).tokens == wanted


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"threads": 0}, "threads=0: give a positive integer"),
        ({"cache_limit": 1.5}, "cache_limit=1.5: give a positive integer"),
        ({"cache_limit": 1}, "cache_limit is 1 bytes, but a page .* has 2048 bytes"),
        ({"texts": 1 << 60}, f"texts is {1 << 60}, .* give at most 32"),
        ({"kv": "int4"}, "kv='int4': give one of"),
        ({"tokenizer": "none/tokenizer.json"}, "none/tokenizer.json: there is no such file"),
        ({"tokenizer": __file__}, "is not a tokenizer.json or tokenizer.model"),
        ({"tokenizer": b"a table"}, "tokenizer"),
        ({"chat_template": 5}, "chat_template=5: give the text"),
        ({"chat_template": "{{ messages"}, "chat template, line 1"),
    ],
)
def test_arguments_of_load(options: dict[str, Any], told: str) -> None:
    with pytest.raises(LoadError, match=told):
        rushlight.llm.load(GOLDEN / "v1.pte", **options)


def test_a_stream_that_is_cancelled_before_it_is_read(runner: Runner, wanted: list[int]) -> None:
    session = runner.session()
    with session.stream(PROMPT, **OPTIONS) as stream:
        stream.cancel()
        reply = stream.reply()
    assert (reply.text, reply.finish, reply.tokens) == ("", "cancelled", [])
    assert session.tokens == runner.encode(PROMPT)
    assert session.generate(max_tokens=12, **OPTIONS).tokens == wanted


def test_a_callback_that_raises(runner: Runner, wanted: list[int]) -> None:
    session, seen = runner.session(), []

    def fail(piece: Piece) -> None:
        seen.append(piece)
        if len(seen) == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        session.generate(PROMPT, max_tokens=100, on_piece=fail, **OPTIONS)
    tokens = [token.id for piece in seen for token in piece.tokens]
    assert len(seen) == 3 and tokens == wanted[: len(tokens)]
    text = session.tokens  # the session rests, with what was told
    assert text == runner.encode(PROMPT) + tokens
    assert session.generate(max_tokens=1, **OPTIONS).tokens == wanted[len(tokens) :][:1]
    _goes_on(runner, wanted)


def test_a_callback_that_uses_the_runner(runner: Runner, wanted: list[int]) -> None:
    session, inner, told = runner.session(), [], []

    def use(piece: Piece) -> None:
        if inner:
            return
        inner.append(runner.generate(PROMPT, max_tokens=12, **OPTIONS).tokens)
        calls: list[Callable[[], object]] = [
            session.fork,
            lambda: session.rewind(1),
            lambda: session.generate("no"),
            lambda: session.tokens,
            lambda: session.save("no"),
        ]
        for call in calls:
            with pytest.raises(RunError, match="the session is generating a text") as error:
                call()
            told.append(error)

    # More tokens than are computed while nobody reads, so that it goes on after the callback.
    reply = session.generate(PROMPT, max_tokens=60, on_piece=use, **OPTIONS)
    assert reply.tokens[:12] == wanted and len(reply.tokens) == 60
    assert inner == [wanted] and len(told) == 5


def test_a_session_of_two_threads(runner: Runner, wanted: list[int]) -> None:
    session = runner.session()
    results: list[Any] = []
    start = threading.Barrier(4)

    def use() -> None:
        start.wait()
        try:
            results.append(session.generate(runner.encode(PROMPT), max_tokens=12, **OPTIONS).tokens)
        except RunError as error:
            results.append(str(error))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [result for result in results if isinstance(result, list)]
    assert wanted in texts
    assert all("fork the session" in result for result in results if isinstance(result, str))
    assert len(session.tokens) == len(texts) * (len(runner.encode(PROMPT)) + 12)


def test_a_runner_that_is_let_go_while_it_writes(program: Path, wanted: list[int]) -> None:
    other = rushlight.llm.load(program, threads=1)
    session = other.session()
    stream = session.stream(PROMPT, max_tokens=12, **OPTIONS)
    first = next(stream)
    del other, session
    gc.collect()
    reply = stream.reply()
    assert reply.tokens == wanted and reply.text.startswith(first.text)


def test_two_runners_of_one_file(program: Path, runner: Runner, wanted: list[int]) -> None:
    other = rushlight.llm.load(program, threads=1, kv="float32")
    ours, theirs = runner.stream(PROMPT, **OPTIONS), other.stream(PROMPT, **OPTIONS)
    for _ in range(5):
        next(ours), next(theirs)
    theirs.close()
    del theirs, other
    gc.collect()
    ours.close()
    _goes_on(runner, wanted)


def test_ctrl_c_while_a_long_prompt_is_read(runner: Runner) -> None:
    """It is told after the next step, and the texts are as they were."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    session = runner.session()
    prompt = [20 + i % 200 for i in range(2000)]
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with session.stream(prompt, **OPTIONS) as stream:
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                next(stream)
            assert stream.statistics.output_tokens == 0
            text = [token.id for _ in range(3) for token in next(stream).tokens]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert text == runner.generate(prompt, max_tokens=len(text), **OPTIONS).tokens
    assert session.tokens == prompt + text


def _generate(runner: Runner, queue: Any) -> None:
    queue.put(runner.generate(PROMPT, max_tokens=12, **OPTIONS).tokens)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork()"
)
def test_the_child_of_a_fork(program: Path, wanted: list[int]) -> None:
    runner = rushlight.llm.load(program, threads=2)
    _goes_on(runner, wanted)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_generate, args=(runner, queue))
    child.start()
    assert queue.get(timeout=60) == wanted
    child.join(60)
    assert child.exitcode == 0
    _goes_on(runner, wanted)


@pytest.mark.parametrize("text", ["\ud800 lamp", "the \udcff", "\x00the", "the lamp\x00"])
def test_texts_that_are_not_utf8(runner: Runner, text: str) -> None:
    tokens = runner.encode(text)
    shown = text.encode("utf-8", "surrogatepass").decode(errors="replace")
    assert runner.decode(tokens) == shown
    assert len(runner.generate(text, max_tokens=2, **OPTIONS).tokens) == 2


def test_log_probabilities_of_a_text(runner: Runner) -> None:
    tokens = runner.encode("the lamp was small and the light was low " * 10)
    scored = runner.logprobs(tokens, top=3)
    assert [token.id for token in scored] == tokens[1:]
    assert [token.logprob for token in scored] == runner.score(tokens)
    for token in scored:
        assert len(token.top) == 3 and token.top[0][1] >= token.top[2][1]
        assert token.logprob <= token.top[0][1]
    reply = runner.generate(tokens[:20], max_tokens=5, logprobs=3, **OPTIONS)
    again = runner.logprobs(tokens[:20] + reply.tokens, top=3)[19:]
    for told, known in zip(again, reply.choices[0].tokens, strict=True):
        assert told.id == known.id and told.logprob == pytest.approx(known.logprob, abs=0.02)
    for top in (-1, 21, True, "3"):
        with pytest.raises(RunError, match="top="):
            runner.logprobs(tokens, top=top)


def test_a_file_of_the_first_version() -> None:
    """tests/golden/llm/make_llm.py wrote it."""
    golden = GOLDEN / "v1.pte"
    expected = json.loads((GOLDEN / "v1.json").read_text())
    runner = rushlight.llm.load(golden, threads=1, kv="float32")
    reply = runner.generate(PROMPT, max_tokens=20, temperature=0)
    assert reply.tokens == expected["tokens"]
    assert runner.encode_chat([{"role": "user", "content": "lamp"}]) == expected["chat"]
    np.testing.assert_allclose(runner.embed([PROMPT])[0], expected["vector"], atol=1e-5)


class _Backend:
    """A backend in Python, which the runner of language models has no place for."""

    def init(self, context: Any) -> str:
        raise AssertionError("it is not asked")

    execute = destroy = init


def test_a_method_that_fails_leaves_a_report(tmp_path: Path) -> None:
    file = read_pte((GOLDEN / "v1.pte").read_bytes())
    for plan in file.program.execution_plan:
        for delegate in plan.delegates:
            delegate.id = "Backend"
    path, report = tmp_path / "m.pte", tmp_path / "r.bin"
    path.write_bytes(write_pte(file))
    register_backend("Backend", _Backend())
    try:
        with pytest.raises(LoadError, match="not in the runner of language models"):
            rushlight.llm.load(path, threads=1, failure_report=report)
    finally:
        unregister_backend("Backend")
    made = explain(report, path)
    assert not made.doubts and made.report.phase == "load" and made.operator == "Backend"
    assert made.report.method in ("step", "embed") and made.report.delegate == 0
    report.unlink()
    runner = rushlight.llm.load(GOLDEN / "v1.pte", threads=1, failure_report=report)
    assert runner.generate(PROMPT, max_tokens=2).tokens and not report.exists()
