"""Replies in the style of each family are taken apart, whole and in any pieces."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from drawn_conversations import value
from hypothesis import given, settings
from hypothesis import strategies as st

from rushlight.errors import Error
from rushlight.llm.template import (
    ChatTemplate,
    ReplyParser,
    ReplyPart,
    ToolCall,
    opens_reasoning,
    parse_reply,
    reply_format_of,
)

TEMPLATES = Path(__file__).parent / "templates"
_X = '{"city": "Zürich"}'
_HERMES = '<tool_call>\n{"name": "f", "arguments": {"city": "Zürich"}}\n</tool_call>'
_DEEP = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n" + _X + "\n```<｜tool▁call▁end｜>"
# (format, text, content, reasoning, calls); a call without arguments has {"city": "Zürich"}.
CASES: list[tuple[str, str, str, str, list[Any]]] = [
    ("hermes", "Hello, <world>!\n", "Hello, <world>!\n", "", []),
    ("hermes", "", "", "", []),
    ("hermes", _HERMES, "", "", ["f"]),
    ("hermes", f"Let me look.\n{_HERMES}\n{_HERMES}\n", "Let me look.", "", ["f", "f"]),
    ("hermes", f"<think>\nHm.\n\nYes.\n</think>\n\n{_HERMES}", "", "Hm.\n\nYes.", ["f"]),
    ("hermes", "<think>\n\n</think>\n\nIt is 4.", "It is 4.", "", []),
    ("hermes", "<think>\nand on", "", "and on", []),
    ("hermes", "I <think> so", "I <think> so", "", []),
    ("hermes", "a < b and <tool", "a < b and <tool", "", []),
    ("hermes", "<tool_call>no JSON</tool_call>", "<tool_call>no JSON</tool_call>", "", []),
    ("hermes", "<tool_call>\n{", "<tool_call>\n{", "", []),
    ("hermes", '<tool_call>{"x": 1}</tool_call>', '<tool_call>{"x": 1}</tool_call>', "", []),
    ("hermes", f"<tool_call>[x] {_HERMES}", "<tool_call>[x]", "", ["f"]),
    (
        "hermes",
        '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}',
        "",
        "",
        [("f", '{"a": 1}')],
    ),
    (
        "hermes",
        '<tool_call>{"name": "f", "arguments": {"a": "</tool_call>\\"}"}}</tool_call> done',
        "done",
        "",
        [("f", '{"a": "</tool_call>\\"}"}')],
    ),
    ("llama", '{"name": "f", "parameters": {"city": "Zürich"}}', "", "", ["f"]),
    ("llama", '<|python_tag|>{"name": "f", "parameters": {"city": "Zürich"}}', "", "", ["f"]),
    (
        "llama",
        '{"name": "f", "parameters": {}}; {"name": "g", "parameters": null}',
        "",
        "",
        [("f", "{}"), ("g", "{}")],
    ),
    ("llama", '<|python_tag|>search.call(query="a, (b)", n=2)', "", "", [("search", None)]),
    ("llama", "<|python_tag|>print(1)\nprint(2)", "", "", [("python", None)]),
    ("llama", '{"answer": 4} is it', '{"answer": 4} is it', "", []),
    ("llama", "It is {4}.", "It is {4}.", "", []),
    ("mistral", f'[TOOL_CALLS] [{{"name": "f", "arguments": {_X}, "id": "abc"}}]', "", "", ["f"]),
    ("mistral", f"[TOOL_CALLS]f[ARGS]{_X}[TOOL_CALLS]g{_X}", "", "", ["f", "g"]),
    ("mistral", f"Sure. [TOOL_CALLS]f{_X}", "Sure.", "", ["f"]),
    ("mistral", "[TOOL", "[TOOL", "", []),
    (
        "deepseek",
        f"Hm.\n</think>\n\n<｜tool▁calls▁begin｜>{_DEEP}\n{_DEEP}<｜tool▁calls▁end｜>",
        "",
        "Hm.",
        ["f", "f"],
    ),
    ("deepseek", f"<｜tool▁call▁begin｜>f<｜tool▁sep｜>{_X}<｜tool▁call▁end｜>", "", "", ["f"]),
    ("phi", f'<|tool_call|>[{{"name": "f", "arguments": {_X}}}]<|/tool_call|>', "", "", ["f"]),
    (
        "mistral",
        f"[TOOL_CALLS]f[CALL_ID]abcdefgh1[ARGS]{_X}[TOOL_CALLS]g[CALL_ID]abcdefgh2[ARGS]{_X}",
        "",
        "",
        ["f", "g"],
    ),
    # Granite writes a list without a marker after it.
    (
        "phi",
        f'<think>Hm.</think><|tool_call|>[{{"arguments": {_X}, "name": "f"}}]',
        "",
        "Hm.",
        ["f"],
    ),
    (
        "command",
        "<|START_THINKING|>I will <look>.<|END_THINKING|><|START_ACTION|>[\n"
        f'    {{"tool_call_id": "0", "tool_name": "f", "parameters": {_X}}},\n'
        f'    {{"tool_call_id": "1", "tool_name": "g", "parameters": {_X}}}\n]<|END_ACTION|>',
        "",
        "I will <look>.",
        ["f", "g"],
    ),
    ("command", "<|START_RESPONSE|>It is 4.<|END_RESPONSE|>", "It is 4.", "", []),
    (
        "action",
        'I will look.\nAction: ```json\n[\n    {\n        "tool_name": "f",\n'
        f'        "parameters": {_X}\n    }}\n]\n```',
        "I will look.",
        "",
        ["f"],
    ),
    ("json", '\n{"name": "f", "parameters": {"city": "Zürich"}}\n', "", "", ["f"]),
    ("json", '```tool_code\nf(city="Zürich")\n```', "", "", ["f"]),
]


def _expected(case: tuple[str, str, str, str, list[Any]]) -> tuple[str, str, list[tuple[str, Any]]]:
    calls = [(c, json.loads(_X)) if isinstance(c, str) else c for c in case[4]]
    return case[2], case[3], [(n, json.loads(a) if isinstance(a, str) else a) for n, a in calls]


def _seen(
    reply: ReplyPart, expected: list[tuple[str, Any]]
) -> tuple[str, str, list[tuple[str, Any]]]:
    calls = [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]
    shown = [
        (name, None if i < len(expected) and expected[i][1] is None else arguments)
        for i, (name, arguments) in enumerate(calls)
    ]
    return reply.content, reply.reasoning, shown


def _in_pieces(parser: ReplyParser, pieces: list[str]) -> ReplyPart:
    whole = ReplyPart()
    for part in [*map(parser.push, pieces), parser.finish()]:
        whole.content += part.content
        whole.reasoning += part.reasoning
        whole.tool_calls += part.tool_calls
    return whole


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[1][:40]}")
def test_reply_is_taken_apart(case: tuple[str, str, str, str, list[Any]]) -> None:
    expected = _expected(case)
    opened = case[1].startswith("Hm.\n</think>")
    reply = parse_reply(case[1], case[0], in_reasoning=opened)
    assert _seen(reply, expected[2]) == expected
    for size in (1, 2, 3, 7):
        pieces = [case[1][i : i + size] for i in range(0, len(case[1]), size)]
        parser = ReplyParser(case[0], in_reasoning=opened)
        assert _in_pieces(parser, pieces) == reply
    for at in range(1, len(case[1])):
        parser = ReplyParser(case[0], in_reasoning=opened)
        assert _in_pieces(parser, [case[1][:at], case[1][at:]]) == reply


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.data())
def test_any_text_is_the_same_in_any_pieces(data: st.DataObject) -> None:
    format, text = data.draw(st.sampled_from([(c[0], c[1]) for c in CASES]))
    parts = st.one_of(st.text(max_size=5), st.sampled_from([c[1] for c in CASES] + [text[:9]]))
    text = "".join(data.draw(st.lists(parts, max_size=4)))
    whole = parse_reply(text, format)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert _in_pieces(ReplyParser(format), pieces) == whole
    if (
        not whole.tool_calls
        and not whole.reasoning
        and "<think>" not in text
        and not (format == "command" and "<|START_THINKING|>" in text)
    ):
        assert _without_around(whole.content) == _without_around(text)


def _without_around(text: str) -> str:
    """Without white space, and the markers around calls, which alone mean nothing."""
    for marker in ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"):
        text = text.replace(marker, "")
    for marker in ("<|START_RESPONSE|>", "<|END_RESPONSE|>"):
        text = text.replace(marker, "")
    return "".join(text.split())


def test_text_is_given_as_soon_as_it_cannot_become_a_marker() -> None:
    parser = ReplyParser("hermes")
    assert parser.push("a <to").content == "a"
    assert parser.push("ast> ").content == " <toast>"
    assert parser.push("b").content == " b"
    assert parser.finish() == ReplyPart()


def test_nothing_is_looked_for_that_was_not_asked_for() -> None:
    parser = ReplyParser("hermes", takes_calls=False, takes_reasoning=False)
    text = f"<think>a</think>{_HERMES}"
    assert _in_pieces(parser, [text]).content == text
    assert _in_pieces(ReplyParser("llama", takes_calls=False), ['{"name": "f"']).content


def test_mistral_keeps_the_ids_of_calls() -> None:
    reply = parse_reply(
        '[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "abcdefgh1"}]', "mistral"
    )
    assert reply.tool_calls == [ToolCall("f", "{}", "abcdefgh1")]
    reply = parse_reply("[TOOL_CALLS]f[CALL_ID]abcdefgh1[ARGS]{}", "mistral")
    assert reply.tool_calls == [ToolCall("f", "{}", "abcdefgh1")]


def test_calls_as_code_have_their_arguments() -> None:
    call = parse_reply('<|python_tag|>search.call(query="a, (b)", n=2)', "llama").tool_calls[0]
    assert json.loads(call.arguments) == {"query": "a, (b)", "n": 2}
    call = parse_reply("<|python_tag|>print(1)\nprint(2)", "llama").tool_calls[0]
    assert json.loads(call.arguments) == {"code": "print(1)\nprint(2)"}


@pytest.mark.parametrize(
    ("template", "format"),
    [
        ("qwen3", "hermes"),
        ("qwen25", "hermes"),
        ("hermes", "hermes"),
        ("llama31", "llama"),
        ("mistral", "mistral"),
        ("deepseek_r1", "deepseek"),
        ("mistral_small", "mistral"),
        ("granite33", "phi"),
        ("phi4_mini", "phi"),
        ("command_r7b", "command"),
        ("command_r", "action"),
        ("smollm2_tools", "hermes"),
        ("llama32", "llama"),
        ("gemma3", "json"),
        ("chatml", "json"),
    ],
)
def test_format_is_known_from_the_template(template: str, format: str) -> None:
    assert reply_format_of((TEMPLATES / f"{template}.jinja").read_text("utf-8")) == format


def _drawn_call(draw: random.Random, number: int) -> dict[str, Any]:
    keys = draw.sample(("city", "n", "ü", 'q"', ""), draw.randrange(4))
    name = draw.choice(("f", "get_weather", "search.web", "naïve_name"))
    function = {"name": name, "arguments": {key: value(draw) for key in keys}}
    return {"id": f"abcdefgh{number}", "type": "function", "function": function}


def _written(chat: ChatTemplate, calls: list[dict[str, Any]], content: str | None) -> str:
    """What stands after the prompt."""
    assistant = {"role": "assistant", "content": content, "tool_calls": calls}
    messages = [{"role": "user", "content": "Hi"}, assistant]
    before = chat.render(messages[:1], tools=[]).text
    whole = chat.render(messages, tools=[], add_generation_prompt=False).text
    start = next(i for i, (a, b) in enumerate(zip(before + "\0", whole, strict=False)) if a != b)
    text = whole[start:].rstrip()
    for end in ("<|eot_id|>", "<|im_end|>", "</s>", "<｜end▁of▁sentence｜>"):
        text = text.removesuffix(end)
    return text.removesuffix("<|END_OF_TURN_TOKEN|>")


@pytest.mark.parametrize(
    "template",
    [
        *("qwen25", "qwen3", "hermes", "mistral", "deepseek_r1", "mistral_small", "granite33"),
        *("command_r", "command_r7b", "smollm2_tools", "llama31", "llama32"),
    ],
)
def test_what_a_template_writes_is_read_back(template: str) -> None:
    source = (TEMPLATES / f"{template}.jinja").read_text("utf-8")
    chat = ChatTemplate(source, {"bos_token": "<s>", "eos_token": "</s>"})
    format, draw = reply_format_of(source), random.Random(template)
    writes_one = template.startswith("llama")
    has_no_text = writes_one or template == "deepseek_r1"
    for _ in range(20):
        calls = [_drawn_call(draw, i) for i in range(1 if writes_one else draw.randrange(1, 4))]
        content = None if has_no_text else draw.choice(("", None, "Let me look."))
        text = _written(chat, calls, content)
        reply = parse_reply(text, format)
        seen = [{"name": c.name, "arguments": json.loads(c.arguments)} for c in reply.tool_calls]
        assert seen == [call["function"] for call in calls], text
        cuts = sorted(draw.randrange(len(text) + 1) for _ in range(draw.randrange(1, 30)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert _in_pieces(ReplyParser(format), pieces) == reply


def test_a_prompt_that_opens_reasoning_is_seen() -> None:
    assert opens_reasoning("<｜Assistant｜><think>\n")
    assert not opens_reasoning("<think>\n\n</think>\n\n") and not opens_reasoning("")


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(Error, match=r"no reply format 'x'; there are deepseek, mistral"):
        ReplyParser("x")
