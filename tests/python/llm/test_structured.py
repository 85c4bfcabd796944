"""`response_format`, `tools` and `tool_choice` as options of `generate`."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from rushlight.errors import Error, RunError
from rushlight.llm import structured
from rushlight.llm.grammar import Grammar, State
from rushlight.llm.runner import Runner
from rushlight.llm.template import parse_reply

AT_ONCE = {"enable_thinking": False}
MESSAGES = [{"role": "user", "content": "the lamp"}]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"color": {"enum": ["red", "green"]}, "on": {"type": "boolean"}},
    "required": ["color", "on"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("f", "g")
]
FORMAT = {"type": "json_schema", "json_schema": {"name": "lamp", "schema": SCHEMA}}


@pytest.mark.parametrize("prompt", ["the lamp", MESSAGES, [20, 21]])
def test_a_schema_holds_for_every_prompt(runner: Runner, prompt: Any) -> None:
    for who in (runner, runner.session()):
        options: dict[str, Any] = {"template": AT_ONCE} if prompt is MESSAGES else {}
        reply = who.generate(prompt, response_format=FORMAT, temperature=1.5, seed=2, **options)
        jsonschema.validate(json.loads(reply.text), SCHEMA)
        assert reply.finish == "stop"
        assert reply.statistics.steps < len(reply.tokens)  # what is forced is not decoded


def test_values_that_nest_until_the_context_is_full(runner: Runner) -> None:
    item = {"anyOf": [{"$ref": "#"}, {"type": "string"}]}
    schema = {"type": "array", "minItems": 1, "maxItems": 4, "items": item}
    form = {"type": "json_schema", "json_schema": {"schema": schema}}
    reply = runner.generate("the", response_format=form, logit_bias={"[": 1000})
    assert reply.finish == "context" and reply.text.count("[") > 1900


def test_a_schema_is_compiled_once(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    compile = Grammar.from_json_schema

    def counting(schema: Any, *given: Any, **options: Any) -> Grammar:
        compiled.append(schema)
        return compile(schema, *given, **options)

    monkeypatch.setattr(Grammar, "from_json_schema", counting)
    schema = {**SCHEMA, "title": "once"}
    form = {"type": "json_schema", "json_schema": {"schema": schema}}
    for _ in range(3):
        runner.generate("the", response_format=form, seed=1)
    assert compiled == [schema]
    for i in range(40):  # as many others take its place
        named = {"schema": {"const": i}}
        runner.generate("the", response_format={"type": "json_schema", "json_schema": named})
    runner.generate("the", response_format=form, seed=1)
    assert len(compiled) == 42


def test_grammars_that_are_kept_have_limited_bytes(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def use(length: int) -> None:
        form = {"type": "json_schema", "json_schema": {"schema": {"const": "x" * length}}}
        runner.generate("the", response_format=form, max_tokens=1)

    kept = runner.structured._grammars
    use(20_000)
    size = next(reversed(kept.values())).bytes
    assert size > 20_000 * 32  # a state for each character
    monkeypatch.setattr(structured, "_MOST_BYTES", 5 * size // 2)
    for i in range(4):
        use(20_001 + i)
    assert len(kept) == 2
    monkeypatch.setattr(structured, "_MOST_BYTES", 1)
    use(20_005)
    assert len(kept) == 1
    assert all(len(digest) == 32 for digest in kept)


def test_the_other_formats(runner: Runner) -> None:
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 9}
    free = runner.generate(MESSAGES, **options).text
    assert runner.generate(MESSAGES, response_format={"type": "text"}, **options).text == free
    text = runner.generate("the", response_format={"type": "json_object"}, max_tokens=5).text
    assert text.startswith("{")


@pytest.mark.parametrize("parallel", [True, False])
def test_calls_that_are_demanded(runner: Runner, parallel: bool) -> None:
    counts = set()
    for seed in range(6):
        reply = runner.generate(
            MESSAGES,
            tools=TOOLS,
            tool_choice="required",
            parallel_tool_calls=parallel,
            template=AT_ONCE,
            temperature=1.5,
            seed=seed,
        )
        told = parse_reply(reply.text, runner.reply_format)
        assert told.content == "" and told.tool_calls
        for call in told.tool_calls:
            assert call.name in ("f", "g")
            jsonschema.validate(json.loads(call.arguments), SCHEMA)
        counts.add(len(told.tool_calls))
    assert counts == {1} if not parallel else max(counts) > 1


def test_one_function_is_demanded(runner: Runner) -> None:
    choice = {"type": "function", "function": {"name": "g"}}
    options: dict[str, Any] = {"tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False}
    options["template"] = AT_ONCE
    for seed in range(4):
        text = runner.generate(MESSAGES, temperature=1.5, seed=seed, **options).text
        assert [call.name for call in parse_reply(text, runner.reply_format).tool_calls] == ["g"]


def test_a_call_that_the_model_begins_is_whole(runner: Runner) -> None:
    options: dict[str, Any] = {}
    runner.structured.read(options, TOOLS, lambda: "none")
    state = State(options["grammar"])
    assert options["special"] and state.can_end()
    assert state.accept_text(b"It is <b>dark</b>. <tool_call>") and not state.can_end()
    assert state.forced_text() == b'\n{"name": "'
    assert state.accept_text(b'\n{"name": "f", "arguments": {"color": "red", "on": true}}')
    assert state.accept_text(b"\n</tool_call>") and state.can_end()


def test_reasoning_comes_before_what_is_asked_for(runner: Runner) -> None:
    open = runner.encode_chat(MESSAGES, enable_thinking=True)
    assert runner.reasoning(open) == "open"
    assert runner.reasoning(runner.encode_chat(MESSAGES)) == "optional"
    assert runner.reasoning([*open, *runner.encode("so.</think>\n\n")]) == "none"
    for template in ({"enable_thinking": True}, {}):
        options: dict[str, Any] = {"response_format": FORMAT, "template": template}
        for seed in range(4):
            reply = runner.generate(MESSAGES, seed=seed, temperature=1.5, max_tokens=300, **options)
            if reply.finish == "length":  # it thinks on
                assert "</think>" not in reply.text
                continue
            told = parse_reply(reply.text, runner.reply_format, in_reasoning=bool(template))
            jsonschema.validate(json.loads(told.content), SCHEMA)


@pytest.mark.parametrize("tool", [False, True])
@pytest.mark.parametrize(
    ("reasoning", "thought"),
    [("none", ""), ("optional", "<think>\nRed <b>?</b></think>\n\n"), ("open", "Hm.</think>\n")],
)
def test_a_grammar_after_reasoning(
    runner: Runner, tool: bool, reasoning: str, thought: str
) -> None:
    options: dict[str, Any] = {"tool_choice": "required"} if tool else {"response_format": FORMAT}
    runner.structured.read(options, TOOLS if tool else None, lambda: reasoning)
    text = '{"name": "f", "arguments": {"color": "red", "on": true}}'
    text = f"<tool_call>\n{text}\n</tool_call>" if tool else '{"color":"red","on":true}'
    state = State(options["grammar"])
    assert state.accept_text(f"{thought}{text}".encode()) and state.can_end()
    state = State(options["grammar"])
    assert state.accept_text(text.encode()) and state.can_end() == (reasoning != "open")
    state = State(options["grammar"])
    assert state.accept_text(b"<think>") == (reasoning != "none")
    assert not state.can_end()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"response_format": "json"}, "whose 'type' is one of"),
        ({"response_format": {"type": "json_schema"}}, "needs {'json_schema'"),
        ({"response_format": {"type": "xml"}}, "whose 'type' is one of"),
        ({"response_format": FORMAT, "tools": TOOLS}, "say different things"),
        ({"tool_choice": "auto"}, "is for tools="),
        ({"parallel_tool_calls": True}, "is for tools="),
        ({"tools": TOOLS, "tool_choice": "any"}, "give one of"),
        ({"tools": TOOLS, "parallel_tool_calls": 1}, "give True or False"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "h"}}}, "'h'|h"),
        ({"tools": [{"type": "web_search"}]}, "each of 'tools' must be"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 3}}}},
            "type",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"a": {1}}}}},
            "must be JSON",
        ),
    ],
)
def test_what_is_refused(runner: Runner, options: dict[str, Any], told: str) -> None:
    with pytest.raises(Error, match=told):
        runner.generate(MESSAGES, **options)


def test_a_grammar_beside_a_format(runner: Runner) -> None:
    grammar = Grammar.from_regex("a", runner.vocabulary)
    for options in ({"response_format": FORMAT}, {"tools": TOOLS}):
        with pytest.raises(RunError, match="grammar= and "):
            runner.generate(MESSAGES, grammar=grammar, **options)


def test_what_is_forced_is_not_decoded(runner: Runner) -> None:
    constant = {"type": "json_schema", "json_schema": {"schema": {"const": {"lamp": "green"}}}}
    reply = runner.generate("the lamp", response_format=constant)
    assert json.loads(reply.text) == {"lamp": "green"}
    assert reply.statistics.steps == 0 and len(reply.tokens) > 2
    # A step for each value, and where a token over the end of what is forced may come.
    choice = {"type": "function", "function": {"name": "g"}}
    for guesses in (8, 0):
        reply = runner.generate(
            MESSAGES,
            tools=TOOLS,
            tool_choice=choice,
            parallel_tool_calls=False,
            template=AT_ONCE,
            guesses=guesses,
        )
        assert parse_reply(reply.text, runner.reply_format).tool_calls[0].name == "g"
        assert len(reply.tokens) > 20 and reply.statistics.steps <= 8
    session = runner.session()
    for _ in range(2):  # the session goes on after a text that the model has not read yet
        reply = session.generate("the lamp", response_format=constant)
        assert reply.statistics.steps == 0
    assert session.generate("and", max_tokens=3).statistics.steps >= 1
