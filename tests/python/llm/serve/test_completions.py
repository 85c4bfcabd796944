"""Text completions and embeddings, by OpenAI's own client; and the program's own errors."""

from __future__ import annotations

import base64
import itertools
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from openai import BadRequestError, OpenAI
from servers import ask, serving

import rushlight.llm
from rushlight.llm.reply import Token
from rushlight.llm.runner import Runner
from rushlight.llm.serve.answers import FINISH
from rushlight.llm.serve.logprobs import text_logprobs


def _create(client: OpenAI, prompt: Any, **options: Any) -> Any:
    given = {"model": "tiny", "prompt": prompt, "max_tokens": 12, "temperature": 0, **options}
    return client.completions.create(**given)


def test_texts_of_several_prompts(client: OpenAI, runner: Runner) -> None:
    prompts = ["the lamp", "the night was", "low"]
    reply = _create(client, prompts)
    wanted = [runner.generate(prompt, temperature=0, max_tokens=12) for prompt in prompts]
    assert [choice.text for choice in reply.choices] == [text.text for text in wanted]
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert reply.usage.prompt_tokens == sum(len(runner.encode(prompt)) for prompt in prompts)
    tokens = [runner.encode(prompt) for prompt in prompts]
    assert [choice.text for choice in _create(client, tokens).choices] == [w.text for w in wanted]
    assert _create(client, tokens[0], echo=True).choices[0].text == prompts[0] + wanted[0].text


def test_a_stream_is_the_whole_text(client: OpenAI) -> None:
    options: dict[str, Any] = {"n": 2, "temperature": 1.2, "seed": 3, "logprobs": 2}
    prompts = ["the lamp", "low"]
    whole = _create(client, prompts, **options)
    events = [event.choices[0] for event in _create(client, prompts, stream=True, **options)]
    for i, choice in enumerate(whole.choices):
        own = [event for event in events if event.index == i]
        assert "".join(event.text for event in own) == choice.text
        for name in ("tokens", "token_logprobs", "text_offset", "top_logprobs"):
            told = [value for event in own for value in getattr(event.logprobs, name)]
            assert told == getattr(choice.logprobs, name)
        offsets = choice.logprobs.text_offset
        lengths = [len(token) for token in choice.logprobs.tokens]
        assert [b - a for a, b in itertools.pairwise(offsets)] == lengths[:-1]


@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities_of_an_echo(client: OpenAI, runner: Runner, stream: bool) -> None:
    prompts = ["the lamp <|end|> was small", "l"]
    reply = _create(client, prompts, echo=True, logprobs=2, n=2, stream=stream)
    told = [event.choices[0] for event in reply] if stream else reply.choices
    for i, prompt in enumerate([prompts[0], prompts[0], prompts[1], prompts[1]]):
        own = [choice for choice in told if choice.index == i]
        text = "".join(choice.text for choice in own)
        values = {
            name: [value for choice in own for value in getattr(choice.logprobs, name)]
            for name in ("tokens", "token_logprobs", "text_offset", "top_logprobs")
        }
        tokens = runner.encode(prompt)
        scores = runner.score(tokens) if len(tokens) > 1 else []
        assert values["tokens"][: len(tokens)] == [runner.piece(t).decode() for t in tokens]
        assert values["token_logprobs"][1 : len(tokens)] == pytest.approx(scores, abs=1e-5)
        assert values["token_logprobs"][0] is None and values["top_logprobs"][0] is None
        assert all(1 <= len(top) <= 2 for top in values["top_logprobs"][1:])  # by their texts
        offsets = values["text_offset"]
        for token, offset in zip(values["tokens"][: len(tokens)], offsets, strict=False):
            assert token == "<|end|>" or text[offset:].startswith(token)
        assert offsets[len(tokens)] == len(runner.decode(tokens)) and offsets == sorted(offsets)


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_alone(client: OpenAI, runner: Runner, stream: bool) -> None:
    prompts = ["the lamp was small", "the night"]
    reply = _create(client, prompts, echo=True, max_tokens=0, logprobs=1, n=2, stream=stream)
    told = [event.choices[0] for event in reply] if stream else reply.choices
    assert sorted(choice.index for choice in told) == [0, 1, 2, 3]
    for choice in told:
        prompt = prompts[choice.index // 2]
        scores = [score.logprob for score in runner.logprobs(runner.encode(prompt))]
        assert (choice.text, choice.finish_reason) == (prompt, "length")
        first, *rest = choice.logprobs.token_logprobs
        assert first is None and rest == pytest.approx(scores, abs=1e-5)
    if not stream:
        assert reply.usage.completion_tokens == 0
        assert reply.usage.prompt_tokens == sum(len(runner.encode(prompt)) for prompt in prompts)
    alone = _create(client, prompts[0], echo=True, max_tokens=0)
    assert alone.choices[0].text == prompts[0] and alone.choices[0].logprobs is None


def test_a_context_that_is_full(client: OpenAI) -> None:
    prompt = [20] * 2040
    shift = {"ignore_eos": True, "context_full": "shift", "keep": 4}
    for options, finish, count in ((shift, "length", 30), ({"ignore_eos": True}, "length", 8)):
        reply = _create(client, prompt, max_tokens=30, extra_body=options)
        assert reply.choices[0].finish_reason == finish
        assert reply.usage.completion_tokens == count


def test_sixteen_tokens_unless_others_are_asked_for(client: OpenAI) -> None:
    reply = client.completions.create(
        model="tiny", prompt="the", temperature=0, extra_body={"ignore_eos": True}
    )
    assert reply.usage is not None and reply.usage.completion_tokens == 16


@pytest.mark.parametrize(
    ("prompt", "options", "told"),
    [
        ("", {}, "the prompt is empty"),
        ("the " * 3000, {}, "the model's context has 2048"),
        ([9999], {}, "token 0 of the prompt is 9999"),
        ([], {}, "'prompt' is an array"),
        ([1, "a"], {}, "'prompt[0]' is 1"),
        (["a", [1]], {}, "give one or the other"),
        (["a"] * 129, {}, "at most 128 are taken"),
        (["a"] * 65, {"n": 2}, "is more than 128"),
        ("a", {"temperature": -1}, "temperature is -1"),
        ("a", {"stop": [3]}, "stop="),
        ("a", {"seed": -1}, "seed=-1"),
        ("a", {"suffix": "b"}, "there is no field 'suffix'"),
        ("a", {"best_of": 3}, "'best_of' is 3: write 'n'"),
        ("a", {"max_tokens": 0}, "'max_tokens' is 0, which is for a prompt alone"),
        ("a", {"max_tokens": 0, "echo": True, "temperature": -1}, "temperature is -1"),
        ("a", {"extra_body": {"context_full": "slide"}}, "context_full='slide'"),
        ("a", {"extra_body": {"keep": 3}}, "keep= is for context_full='shift'"),
        ("a", {"logprobs": 50}, "logprobs=50"),
        ("a", {"extra_body": {"dry_breakers": ["e"] * 17}}, "has 17 breakers: give at most 16"),
        ("a", {"extra_body": {"dry_breakers": ["e"]}}, "no effect without dry_multiplier="),
        ("a", {"extra_body": {"mirostat": 2}}, "there is no field 'mirostat'"),
        ("a", {"extra_body": {"response_format": {"type": "xml"}}}, "response_format="),
        (
            "a",
            {"extra_body": {"response_format": {"type": "json_schema"}}},
            "needs {'json_schema': {'schema': {...}}}",
        ),
    ],
)
def test_what_is_refused(client: OpenAI, prompt: Any, options: Any, told: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        _create(client, prompt, **options)
    assert told in caught.value.body["message"]  # type: ignore[index]
    assert _create(client, "the").choices[0].finish_reason in ("length", "stop")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tools": [3]}, "'tools'"),
        ({"tool_choice": "required"}, "tool_choice='required' is for tools="),
        ({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "all"}, "one"),
        (
            {
                "tools": [{"type": "function", "function": {"name": "f"}}],
                "response_format": {"type": "json_object"},
            },
            "say different things",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "integer", "enum": ["a"]}},
                }
            },
            "",
        ),
        ({"extra_body": {"chat_template_kwargs": {"messages": 3}}}, "has 'messages'"),
        ({"extra_body": {"chat_template_kwargs": {"self": 3}}}, "has 'self'"),
        ({"extra_body": {"enable_thinking": "no"}}, "'enable_thinking'"),
    ],
)
def test_what_a_chat_refuses(client: OpenAI, options: Any, told: str) -> None:
    messages: Any = [{"role": "user", "content": "the"}]
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model="tiny", messages=messages, **options)
    assert told in caught.value.body["message"]  # type: ignore[index]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_text_that_fails_in_the_middle(program: Path, path: str, stream: bool) -> None:
    # One page of the cache, which the text outgrows.
    pages = 4 * 2048 // 64
    limit = rushlight.llm.load(program, threads=1).cache_limit // pages
    runner = rushlight.llm.load(program, threads=1, cache_limit=limit)
    asked = {"messages": [{"role": "user", "content": "a"}], "prompt": "a"}
    name = "messages" if "chat" in path else "prompt"
    body = {"model": "tiny", name: asked[name], "max_tokens": 200, "ignore_eos": True}
    with serving(runner) as port:
        status, _, answer = ask(port, path, {**body, "stream": stream})
    events = answer.decode().split("data: ")
    error = json.loads(events[-1])["error"]
    assert "Raise cache_limit" in error["message"]
    assert status == (200 if stream else 400) and (len(events) > 3) == stream
    assert all('"finish_reason":null' in event for event in events[1:-1] if stream)


def test_a_text_that_was_broken_off_has_no_reason_to_end() -> None:
    assert FINISH["cancelled"] is None and FINISH["error"] is None


class _Counted(str):
    """A text that counts how often its length is asked for."""

    asked = 0

    def __len__(self) -> int:
        _Counted.asked += 1
        return super().__len__()


def test_log_probabilities_of_a_long_text() -> None:
    count = 1000
    runner: Any = SimpleNamespace(
        piece=lambda token: SimpleNamespace(decode=lambda errors: _Counted("ab")),
        decode=lambda tokens: "ab",
    )
    told, end = text_logprobs(runner, [Token(i) for i in range(count)], 5)
    assert told["text_offset"] == list(range(5, 5 + 2 * count, 2)) and end == 5 + 2 * count
    assert _Counted.asked <= 2 * count
    assert text_logprobs(runner, [], 5)[0]["text_offset"] == []


def test_a_whole_answer_is_written_by_another_thread(
    port: int, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece, names = runner.piece, set()

    def noting(token: int) -> bytes:
        names.add(threading.current_thread().name.partition("_")[0])
        return piece(token)

    monkeypatch.setattr(runner, "piece", noting)
    body = {"model": "tiny", "prompt": "the", "max_tokens": 3, "logprobs": 2}
    assert ask(port, "/v1/completions", body)[0] == 200
    assert names == {"asyncio"}


def test_embeddings(client: OpenAI, runner: Runner) -> None:
    texts = ["the lamp", "low <|end|>"]
    wanted = runner.embed(texts)
    tokens = [runner.encode(text, parse_special=False) for text in texts]
    for given in (texts, tokens):
        for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
            reply: Any = client.embeddings.create(model="tiny", input=given, **options)
            assert reply.usage.total_tokens == sum(map(len, tokens))
            for i, data in enumerate(reply.data):
                vector: Any = data.embedding
                if isinstance(vector, str):
                    vector = np.frombuffer(base64.b64decode(vector), "<f4")
                np.testing.assert_array_equal(np.array(vector, np.float32), wanted[i])
    assert len(client.embeddings.create(model="tiny", input="the").data) == 1


def test_embeddings_cut_texts_that_are_too_long(client: OpenAI, runner: Runner) -> None:
    long = "the " * 3000
    wanted = runner.embed([long], truncate=True)
    for given in (long, runner.encode(long, parse_special=False)):
        reply = client.embeddings.create(model="tiny", input=given, extra_body={"truncate": True})
        assert reply.usage.prompt_tokens == runner.context
        np.testing.assert_array_equal(np.array(reply.data[0].embedding, np.float32), wanted[0])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"input": "a", "dimensions": 2}, "own dimensions"),
        ({"input": "a", "encoding_format": "int8"}, "give one of float, base64"),
        ({"input": ["a", [1]]}, "give one or the other"),
        ({"input": []}, "'input' is an array"),
        ({"input": "the " * 3000}, "context has 2048: shorten it, or ask for truncate"),
        ({"input": "a", "extra_body": {"truncate": 1}}, "'truncate' is 1: give true or false"),
        ({"input": [9999]}, "9999"),
    ],
)
def test_what_embeddings_refuse(client: OpenAI, options: Any, told: str) -> None:
    with pytest.raises(BadRequestError, match=told):
        client.embeddings.create(model="tiny", **options)
