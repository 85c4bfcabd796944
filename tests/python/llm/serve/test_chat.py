"""Chat completions, by OpenAI's own client."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from openai import OpenAI

from rushlight.llm.runner import Runner

AT_ONCE = {"enable_thinking": False}
MESSAGES: Any = [{"role": "user", "content": "the lamp"}]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "color": {"enum": ["red", "green"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "names": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["color", "count", "names"],
    "additionalProperties": False,
}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    for name in ("get_lamp", "get_night")
]


def _create(client: OpenAI, **options: Any) -> Any:
    given = {"model": "tiny", "messages": MESSAGES, "max_completion_tokens": 40, **options}
    return client.chat.completions.create(**given)


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "rushlight"


def test_a_reply_is_the_runners(client: OpenAI, runner: Runner) -> None:
    reply = _create(client, temperature=0)
    wanted = runner.generate(MESSAGES, temperature=0, max_tokens=40)
    assert reply.choices[0].message.content == wanted.text.strip()
    assert reply.choices[0].finish_reason == wanted.finish
    usage = reply.usage
    assert usage.prompt_tokens == len(runner.encode_chat(MESSAGES))
    assert usage.completion_tokens == wanted.statistics.output_tokens
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    again = _create(client, temperature=0).usage
    assert again.prompt_tokens_details.cached_tokens == again.prompt_tokens - 1


@pytest.mark.parametrize("n", [1, 3])
def test_a_stream_is_the_whole_reply(client: OpenAI, n: int) -> None:
    options: dict[str, Any] = {
        "temperature": 1.2,
        "seed": 5,
        "n": n,
        "logprobs": True,
        "top_logprobs": 2,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.1,
        "stop": ["zz"],
    }
    whole = _create(client, **options)
    events = list(_create(client, stream=True, stream_options={"include_usage": True}, **options))
    assert len(whole.choices) == n
    assert whole.usage.prompt_tokens_details.cached_tokens <= whole.usage.prompt_tokens
    assert events[-1].choices == [] and events[-1].usage.total_tokens == whole.usage.total_tokens
    assert all(event.usage is None for event in events[:-1])
    deltas = [event.choices[0] for event in events[:-1]]
    for i, choice in enumerate(whole.choices):
        own = [delta for delta in deltas if delta.index == i]
        assert own[0].delta.role == "assistant"
        assert "".join(d.delta.content or "" for d in own) == choice.message.content
        assert [d.finish_reason for d in own if d.finish_reason] == [choice.finish_reason]
        told = [token for d in own for token in d.logprobs.content]
        assert told == choice.logprobs.content
        assert all(len(token.top_logprobs) == 2 and token.logprob <= 0 for token in told)


def test_a_full_context_keeps_the_system_prompt(
    client: OpenAI, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, kept = runner.stream, []

    def noting(prompt: Any, **options: Any) -> Any:
        kept.append(options.get("keep"))
        return stream(prompt, **options)

    monkeypatch.setattr(runner, "stream", noting)
    messages: Any = [{"role": "system", "content": "the night was low"}, *MESSAGES]
    system = runner.encode_chat(messages[:1], add_generation_prompt=False)
    for body in ({"context_full": "shift"}, {"context_full": "shift", "keep": 2}, {}):
        _create(client, messages=messages, extra_body=body, max_completion_tokens=2)
    assert kept == [len(system), 2, None]


def test_one_seed_one_text(client: OpenAI) -> None:
    texts = [
        _create(client, temperature=1.3, seed=seed).choices[0].message.content for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_stop_string_ends_a_reply(client: OpenAI, runner: Runner) -> None:
    whole = runner.generate(MESSAGES, temperature=0, max_tokens=40, ignore_eos=True).text
    slices = [whole[i : i + 3] for i in range(10, len(whole))]
    stop = next(part for part in slices if part.isascii() and part.isprintable())
    choice = _create(client, temperature=0, stop=stop, extra_body={"ignore_eos": True}).choices[0]
    assert choice.message.content == whole[: whole.index(stop)].strip()
    assert choice.finish_reason == "stop"


def test_a_bias_decides(client: OpenAI, runner: Runner) -> None:
    token = runner.encode("night")[0]
    choice = _create(
        client, logit_bias={str(token): 100}, max_completion_tokens=3, temperature=0
    ).choices[0]
    assert choice.message.content == (runner.piece(token) * 3).decode()


def test_temperature_0_needs_no_other_filter(client: OpenAI) -> None:
    plain = _create(client, temperature=0).choices[0].message.content
    assert _create(client, temperature=0, top_p=0.9).choices[0].message.content == plain


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_holds(client: OpenAI, stream: bool) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "lamp", "schema": SCHEMA}}
    for seed in range(3):
        options: dict[str, Any] = {"response_format": form, "temperature": 1.5, "seed": seed}
        options["extra_body"] = AT_ONCE
        if stream:
            events = _create(client, stream=True, **options)
            text = "".join(event.choices[0].delta.content or "" for event in events)
        else:
            text = _create(client, **options).choices[0].message.content
        jsonschema.validate(json.loads(text), SCHEMA)


def test_a_json_object(client: OpenAI) -> None:
    reply = _create(
        client,
        response_format={"type": "json_object"},
        temperature=0,
        max_completion_tokens=4,
        extra_body=AT_ONCE,
    )
    assert reply.choices[0].message.content.startswith("{")


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", {"get_lamp", "get_night"}),
        ({"type": "function", "function": {"name": "get_night"}}, {"get_night"}),
    ],
)
def test_calls_of_tools(client: OpenAI, choice: Any, names: set[str]) -> None:
    reply = _create(
        client,
        tools=TOOLS,
        tool_choice=choice,
        parallel_tool_calls=False,
        temperature=1.0,
        seed=3,
        max_completion_tokens=200,
        extra_body=AT_ONCE,
    ).choices[0]
    (call,) = reply.message.tool_calls
    assert reply.finish_reason == "tool_calls" and reply.message.content is None
    assert call.function.name in names and call.id and call.type == "function"
    jsonschema.validate(json.loads(call.function.arguments), SCHEMA)
    messages = [
        *MESSAGES,
        reply.message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": "12 lamps"},
    ]
    after = _create(client, messages=messages, tools=TOOLS, tool_choice="none").choices[0]
    assert not after.message.tool_calls


def test_streamed_calls_of_tools(client: OpenAI) -> None:
    with client.chat.completions.stream(
        model="tiny",
        messages=MESSAGES,
        tools=TOOLS,
        tool_choice="required",
        seed=4,
        parallel_tool_calls=False,
        max_completion_tokens=200,
        extra_body=AT_ONCE,
    ) as stream:
        choice = stream.get_final_completion().choices[0]
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    jsonschema.validate(json.loads(call.function.arguments), SCHEMA)


def test_reasoning_is_told_apart(client: OpenAI) -> None:
    thinking = {"chat_template_kwargs": {"enable_thinking": True}}
    reply = _create(client, temperature=0, extra_body=thinking).choices[0].message
    assert reply.reasoning_content and not reply.content
    events = list(_create(client, temperature=0, stream=True, extra_body=thinking))
    deltas = [event.choices[0].delta for event in events]
    told = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert told == reply.reasoning_content
    quiet = _create(client, temperature=0, extra_body={"enable_thinking": False})
    assert quiet.choices[0].message.content


def test_usage_in_every_event(client: OpenAI) -> None:
    events = list(
        _create(client, stream=True, stream_options={"continuous_usage_stats": True}, seed=1)
    )
    counts = [event.usage.completion_tokens for event in events]
    assert counts == sorted(counts) and counts[-1] > 0
