"""Language models through the C interface write what ``rushlight.llm.load`` writes."""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_library import CError, Library
from c_texts import generate, generate_options

import rushlight.llm
from rushlight.errors import Code
from rushlight.inspect import Inspector
from rushlight.llm.runner import Runner

MODEL = Path(__file__).resolve().parents[2] / "golden" / "llm" / "v1.pte"
PROMPT = "the lamp was"


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


@pytest.fixture(scope="module")
def runner() -> Runner:
    return rushlight.llm.load(MODEL)


@pytest.fixture(scope="module")
def llm(library: Library) -> Iterator[ctypes.c_void_p]:
    handle = library.handle("rl_llm_open", str(MODEL).encode(), None)
    yield handle
    library.call("rl_llm_close", handle)


def _tokens(library: Library, name: str, *arguments: Any) -> list[int]:
    count = ctypes.c_size_t()
    library.call(name, *arguments, None, 0, ctypes.byref(count))
    tokens = (ctypes.c_int32 * count.value)()
    library.call(name, *arguments, tokens, count, ctypes.byref(count))
    return list(tokens)


@pytest.mark.parametrize("text", ["", PROMPT, "naïve café — 你好", "a\x00b", "<s>"])
def test_tokenizer(library: Library, llm: ctypes.c_void_p, runner: Runner, text: str) -> None:
    tokens = _tokens(library, "rl_llm_encode", llm, library.text(text), 1)
    assert tokens == list(runner.encode(text))
    ids = (ctypes.c_int32 * len(tokens))(*tokens)
    count = ctypes.c_size_t()
    library.call("rl_llm_decode", llm, ids, len(tokens), 4, None, 0, ctypes.byref(count))
    bytes_ = ctypes.create_string_buffer(count.value)
    library.call("rl_llm_decode", llm, ids, len(tokens), 4, bytes_, count, ctypes.byref(count))
    assert bytes_.raw.decode() == runner.decode(tokens)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.0, "max_tokens": 12},
        {"temperature": 0.9, "top_k": 20, "top_p": 0.9, "seed": 5, "max_tokens": 12},
        {"temperature": 1.0, "min_p": 0.05, "repetition_penalty": 1.2, "seed": 9, "max_tokens": 8},
    ],
)
def test_generates_as_load_does(
    library: Library, llm: ctypes.c_void_p, runner: Runner, options: dict[str, Any]
) -> None:
    wanted = runner.generate(PROMPT, ignore_eos=True, **options)
    made = generate_options(library, llm, ignores_end=1, **options)
    tokens = list(runner.encode(PROMPT))
    reader = generate(library, "rl_llm_generate", llm, tokens, made)
    assert reader.tokens[0] == wanted.tokens and reader.texts[0].decode() == wanted.text
    session = library.handle("rl_session_open", llm)
    again = generate(library, "rl_session_generate", session, tokens, made)
    assert again.tokens == reader.tokens
    assert _tokens(library, "rl_session_tokens", session) == tokens + wanted.tokens
    library.call("rl_session_close", session)


def test_several_texts_stops_and_probabilities(
    library: Library, llm: ctypes.c_void_p, runner: Runner
) -> None:
    tokens = list(runner.encode(PROMPT))
    many = generate_options(library, llm, n=3, seed=3, max_tokens=6, ignores_end=1, logprobs=0)
    reader = generate(library, "rl_llm_generate", llm, tokens, many)
    assert [len(t) for t in reader.tokens] == [6, 6, 6] and len(reader.logprobs) == 18
    assert all(p <= 0 for p in reader.logprobs) and reader.finish == [2, 2, 2]
    first = runner.generate(PROMPT, temperature=0, max_tokens=8, ignore_eos=True)
    stop = (library.types["rl_text_v1"] * 1)(library.text(first.text[3:5]))
    options = generate_options(
        library, llm, temperature=0, max_tokens=8, ignores_end=1, stop=stop, n_stop=1
    )
    ended = generate(library, "rl_llm_generate", llm, tokens, options)
    assert ended.finish == [1]
    assert ended.texts[0].decode() == first.text[: first.text.index(first.text[3:5])]


def test_grammar(library: Library, llm: ctypes.c_void_p, runner: Runner) -> None:
    schema = json.dumps({"enum": ["yes", "no"]})
    grammar = library.handle("rl_grammar_from_json_schema", llm, library.text(schema))
    options = generate_options(library, llm, temperature=0, max_tokens=20, grammar=grammar.value)
    tokens = list(runner.encode(PROMPT))
    reader = generate(library, "rl_llm_generate", llm, tokens, options)
    assert json.loads(reader.texts[0]) in ("yes", "no")
    library.call("rl_grammar_close", grammar)


def test_cancels_on_another_thread(library: Library, llm: ctypes.c_void_p) -> None:
    session = library.handle("rl_session_open", llm)
    options = generate_options(library, llm, shifts=1, max_tokens=1 << 40, ignores_end=1)
    is_over = threading.Event()

    def cancel() -> None:
        while not is_over.is_set():
            library.call("rl_session_cancel", session)

    other = threading.Thread(target=cancel)
    other.start()
    reader = generate(library, "rl_session_generate", session, [5, 6, 7], options)
    is_over.set()
    other.join()
    assert reader.finish == [4]
    library.call("rl_session_close", session)


def test_description_and_chat(library: Library, llm: ctypes.c_void_p, runner: Runner) -> None:
    info = library.make("rl_llm_info")
    library.call("rl_llm_describe", llm, ctypes.byref(info))
    assert info.vocabulary >= 1 and info.has_chat_template == 1
    messages = [{"role": "user", "content": "hi"}]
    variables = json.dumps({"messages": messages, "add_generation_prompt": True})
    tokens = _tokens(library, "rl_llm_encode_chat", llm, library.text(variables))
    assert tokens == list(runner.encode_chat(messages))


def test_embeddings(library: Library, llm: ctypes.c_void_p, runner: Runner) -> None:
    texts = (library.types["rl_text_v1"] * 2)(library.text("a lamp"), library.text("the light"))
    vectors = np.zeros((2, runner.hidden), np.float32)
    data = vectors.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    library.call("rl_llm_embed", llm, texts, 2, 1, 0, data, vectors.size)
    np.testing.assert_array_equal(vectors, runner.embed(["a lamp", "the light"]))
    with pytest.raises(CError, match=f"room for 3 .* {vectors.size}") as failure:
        library.call("rl_llm_embed", llm, texts, 2, 1, 0, data, 3)
    assert failure.value.code == Code.INVALID_ARGUMENT


def test_traces(library: Library, runner: Runner, tmp_path: Path) -> None:
    llm = library.handle("rl_llm_open", str(MODEL).encode(), None)
    with pytest.raises(CError, match="nothing was traced: start a trace") as caught:
        library.call("rl_llm_trace_save", llm, str(tmp_path / "m.etdp").encode())
    assert caught.value.code == Code.INVALID_STATE.value
    traced = library.make("rl_trace_options", values=1)
    library.call("rl_llm_trace_start", llm, ctypes.byref(traced))
    options = generate_options(library, llm, temperature=0, max_tokens=5, ignores_end=1)
    tokens = list(runner.encode(PROMPT))
    reader = generate(library, "rl_llm_generate", llm, tokens, options)
    library.call("rl_llm_trace_stop", llm)
    generate(library, "rl_llm_generate", llm, tokens, options)
    library.call("rl_llm_trace_save", llm, str(tmp_path / "m.etdp").encode())
    inspector = Inspector(
        tmp_path / "m.etdp", program=MODEL, debug_buffer_path=tmp_path / "m.etdp.values"
    )
    runs = [block for block in inspector.event_blocks if block.name == "Execute"]
    assert inspector.mismatches == [] and {block.method for block in runs} == {"step"}
    whole = next(event for event in runs[-1].events if event.name == "Method::execute")
    assert whole.perf_data is not None and len(whole.perf_data.raw) <= 5
    assert int(np.argmax(runs[0].run_output[0][-1])) == reader.tokens[0][0]
    library.call("rl_llm_close", llm)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"n_backends": 1}, "backends is NULL"),
        ({"n_backend_libraries": 1}, "backend_libraries is NULL"),
    ],
)
def test_backends_that_are_refused(library: Library, fields: dict[str, int], told: str) -> None:
    options = library.make("rl_llm_options", **fields)
    with pytest.raises(CError, match=told):
        library.handle("rl_llm_open", str(MODEL).encode(), ctypes.byref(options))
