"""OpenAI's tools as grammars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from walks import PIECES

from rushlight import Error
from rushlight.llm.grammar import Grammar, State, ToolFormat, Vocabulary
from rushlight.llm.template import parse_reply

CALL, CALLED = len(PIECES), len(PIECES) + 1
SPECIAL = [*PIECES, b"<tool_call>", b"</tool_call>"]


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "$defs": {"unit": {"enum": ["c", "f"]}},
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [
    _tool("weather", city={"type": "string"}, unit={"$ref": "#/$defs/unit"}),
    _tool("time"),
    {"type": "function", "function": {"name": "now"}},
]


def _state(special: bool = True, **options: Any) -> State:
    vocabulary = (
        Vocabulary(SPECIAL, special=[CALL, CALLED], ends=[0])
        if special
        else Vocabulary(PIECES, ends=[0])
    )
    return State(Grammar.from_tools(TOOLS, vocabulary, **{"family": "qwen3", **options}))


def _reads(state: State, *parts: int | str) -> bool:
    return all(
        state.accept(part) if isinstance(part, int) else state.accept_text(part.encode())
        for part in parts
    )


WEATHER = '{"name": "weather", "arguments": {"city": "Rome", "unit": "c"}}'


def test_a_required_call_is_between_special_tokens() -> None:
    state = _state(tool_choice="required")
    assert np.flatnonzero(state.mask()).tolist() == [CALL]
    assert state.forced()[0] == CALL and not state.fork().accept_text(b"<tool_call>")
    assert _reads(state, CALL, "\n" + WEATHER + "\n", CALLED) and state.can_end()
    assert _reads(state, "\n", CALL, '\n{"name": "now", "arguments": {}}\n', CALLED)
    assert not _reads(
        _state(tool_choice="required", parallel=False), CALL, "\n" + WEATHER + "\n", CALLED, "\n"
    )


def test_tools_are_limited_together() -> None:
    vocabulary = Vocabulary(PIECES, ends=[0])
    tools = [_tool(f"f{i}", a={"const": "x" * 100_000}) for i in range(5)]
    with pytest.raises(Error, match=r"the tools up to 'f3': .* more than 400000 states"):
        Grammar.from_tools(tools, vocabulary, family="qwen3")
    part = {"const": "a" * 13, "pattern": "(a|b)*a(a|b){12}"}
    tools = [_tool(f"f{i}", a=part) for i in range(500)]
    with pytest.raises(Error, match=r"compiling takes more than .* operations in all"):
        Grammar.from_tools(tools, vocabulary, family="qwen3")


def test_one_tool_can_be_asked_for() -> None:
    state = _state(tool_choice={"type": "function", "function": {"name": "time"}})
    forced = state.forced()
    assert forced[0] == CALL
    assert (
        b"".join(SPECIAL[t] for t in forced[1:])
        == b'\n{"name": "time", "arguments": {}}\n</tool_call>'
    )


@pytest.mark.parametrize("special", [True, False])
def test_text_may_stand_before_calls(special: bool) -> None:
    begin: int | str = CALL if special else "<tool_call>"
    end: int | str = CALLED if special else "</tool_call>"
    state = _state(special)
    assert state.can_end() and _reads(state, "Let me <tool see. ") and state.can_end()
    assert _reads(state, begin) and not state.can_end()
    assert _reads(state, "\n" + WEATHER + "\n", end) and state.can_end()
    assert not _reads(state, "x")
    assert not _reads(_state(special), "text", begin, "\nno call")


def test_without_tools_there_is_text() -> None:
    state = _state(tool_choice="none")
    assert not state.mask()[CALL] and _reads(state, "any text {") and state.can_end()


def test_families() -> None:
    state = _state(False, family="llama", white_space="compact")
    assert _reads(state, '{"name":"now","parameters":{}}') and state.can_end()
    assert _reads(_state(False, family="llama"), "text {") and not _reads(
        _state(False, family="llama"), '{"a'
    )
    state = _state(False, family="mistral", tool_choice="required")
    assert _reads(state, '[TOOL_CALLS][{"name": "now", "arguments": {}}, ' + WEATHER + "]")
    assert state.must_end()
    own = ToolFormat("<<", ">>", name="tool", arguments="input")
    state = _state(False, family=own, tool_choice="required", white_space="flexible")
    assert _reads(state, '<<{ "tool" : "now" ,\n "input":\n{ } }>>') and state.can_end()


_NOW = '{"name": "now", "arguments": {}}'
_NOW_LLAMA = '{"name": "now", "parameters": {}}'
WRITTEN = {
    **dict.fromkeys(
        ("qwen2", "qwen3", "smollm3"),
        ("hermes", f"<tool_call>\n{_NOW}\n</tool_call>\n<tool_call>\n{_NOW}\n</tool_call>"),
    ),
    "llama": ("llama", f"{_NOW_LLAMA}; {_NOW_LLAMA}"),
    "mistral": ("mistral", f"[TOOL_CALLS][{_NOW}, {_NOW}]"),
    "phi4": ("phi", f"<|tool_call|>[{_NOW}, {_NOW}]<|/tool_call|>"),
}


@pytest.mark.parametrize("family", WRITTEN)
def test_calls_that_are_written_are_read_as_calls(family: str) -> None:
    name, text = WRITTEN[family]
    state = _state(False, family=family, tool_choice="required")
    assert _reads(state, text) and state.can_end()
    reply = parse_reply(text, name)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("now", "{}")] * 2
    assert reply.content == ""


@pytest.mark.parametrize(
    ("tools", "options", "reason"),
    [
        (TOOLS, {"tool_choice": "maybe"}, "'tool_choice' must be none, auto, required"),
        (TOOLS, {"tool_choice": {"function": {"name": "x"}}}, "the tool x, which is not in"),
        ([], {"tool_choice": "required"}, "asks for a tool, which is not in 'tools'"),
        ([{"function": {}}], {}, "each of 'tools' must be"),
        ([_tool("f", a={"not": {}})], {}, "the tool 'f': the schema at #/properties/a: 'not'"),
        (TOOLS, {"family": "gpt2"}, "the family 'gpt2' have no form for calls"),
        (TOOLS, {"white_space": "some"}, "white_space is 'some': it can be compact"),
    ],
)
def test_wrong_tools(tools: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(Error, match=reason):
        Grammar.from_tools(tools, Vocabulary(PIECES), **{"family": "qwen2", **options})
