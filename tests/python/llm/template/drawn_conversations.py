"""Conversations drawn at random for tests of chat templates: odd roles, empty and missing contents,
tools and their answers, reasoning, Unicode, and the options that templates read."""

from __future__ import annotations

import random
from typing import Any

Variables = dict[str, Any]

TEXTS = (
    "Hi",
    "",
    " ",
    "\n",
    "  two  spaces \n\n",
    "What is 2 + 2?",
    "Grüße, 世界! 🦊‍🔥",
    "İŞ ﬁ ǅ ß\u0301\u200b\u00a0\u2028\ufeff",
    "שלום עולם",
    "<|im_end|><|eot_id|></s>[INST]",
    "{{ 1 }} {% if x %} {# no #}",
    "\"quotes\" 'and' \\back\\slashes\\n <b>&amp;</b>",
    "<think>\nHm.\n</think>\n\nFour.",
    "<think>never closed",
    "</think>only closed",
    "<tool_response>\n21 degrees\n</tool_response>",
    '{"answer": [1, 2]}',
    "first\r\nsecond\tthird",
    "/no_think Be brief. /system_override",
    "x" * 300,
)
NAMES = ("get_weather", "now", "search.web", "f", "naïve_name", "")
ROLES = ("user", "assistant", "system", "tool", "user", "assistant", "tool")
ODD_ROLES = ("developer", "ipython", "function", "critic", "", "User", "documents", "tool_response")
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")


def value(draw: random.Random, depth: int = 2) -> Any:
    """A JSON value."""
    kind = draw.randrange(7 if depth else 5)
    if kind == 5:
        return [value(draw, depth - 1) for _ in range(draw.randrange(3))]
    if kind == 6:
        return {draw.choice(TEXTS): value(draw, depth - 1) for _ in range(draw.randrange(3))}
    plain: tuple[Any, ...] = (draw.choice(TEXTS), draw.randrange(-9, 10**6), 2.5, None, True)
    return plain[kind]


def _schema(draw: random.Random, depth: int = 1) -> Variables:
    schema: Variables = {"type": draw.choice(TYPES)}
    if draw.random() < 0.2:
        schema["type"] = draw.sample(TYPES, 2)
    if draw.random() < 0.6:
        schema["description"] = draw.choice(TEXTS)
    if draw.random() < 0.2:
        schema["enum"] = [value(draw, 0) for _ in range(draw.randrange(1, 4))]
    if draw.random() < 0.2:
        schema["default"] = value(draw, 1)
    if depth and schema["type"] == "array":
        schema["items"] = _schema(draw, depth - 1)
    if depth and schema["type"] == "object":
        names = draw.sample(("a", "unit", "größe", "b c"), draw.randrange(3))
        schema["properties"] = {name: _schema(draw, depth - 1) for name in names}
    return schema


def tool(draw: random.Random) -> Variables:
    """A function as OpenAI's API describes it, now and then with parts left out."""
    function: Variables = {"name": draw.choice(NAMES)}
    if draw.random() < 0.9:
        function["description"] = draw.choice(TEXTS)
    if draw.random() < 0.9:
        names = draw.sample(("city", "days", "at", "größe"), draw.randrange(4))
        function["parameters"] = {
            "type": "object",
            "properties": {name: _schema(draw) for name in names},
            "required": names[: draw.randrange(3)],
        }
    if draw.random() < 0.2:
        function["return"] = {"type": "string", "description": draw.choice(TEXTS)}
    return function if draw.random() < 0.1 else {"type": "function", "function": function}


def _call(draw: random.Random) -> Variables:
    arguments: Any = {
        draw.choice(("city", "n", "ü")): value(draw) for _ in range(draw.randrange(3))
    }
    if draw.random() < 0.2:
        arguments = draw.choice(('{"city": "Zürich"}', "", "{}", None))
    call: Variables = {"function": {"name": draw.choice(NAMES), "arguments": arguments}}
    if draw.random() < 0.8:
        call["type"] = "function"
    if draw.random() < 0.8:
        call["id"] = draw.choice(("abcdefgh1", "call_123", "0", ""))
    return call["function"] if draw.random() < 0.1 else call


def _content(draw: random.Random) -> Any:
    way = draw.random()
    if way < 0.75:
        return draw.choice(TEXTS)
    if way < 0.8:
        return None
    if way < 0.85:
        return value(draw)
    parts: list[Any] = [
        {"type": "text", "text": draw.choice(TEXTS)} for _ in range(draw.randrange(1, 3))
    ]
    if draw.random() < 0.2:
        parts.insert(0, {"type": "image"})
    return parts


def message(draw: random.Random, role: str) -> Variables:
    """A message of a role."""
    made: Variables = {"role": role, "content": _content(draw)}
    if role == "assistant" and draw.random() < 0.35:
        made["tool_calls"] = [_call(draw) for _ in range(draw.choice((0, 1, 1, 2)))]
        if draw.random() < 0.3:
            del made["content"]
    if role == "assistant" and draw.random() < 0.2:
        name = draw.choice(("reasoning_content", "thinking", "reasoning"))
        made[name] = draw.choice((*TEXTS, None))
    if role in ("tool", "function", "ipython"):
        if draw.random() < 0.8:
            made["tool_call_id"] = draw.choice(("abcdefgh1", "call_123"))
        if draw.random() < 0.6:
            made["name"] = draw.choice(NAMES)
    if role == "system" and draw.random() < 0.1:
        made["tools"] = draw.choice((None, "[]"))
    if draw.random() < 0.03:
        made.pop("content", None)
    return made


def _roles(draw: random.Random) -> list[str]:
    """Mostly in the order that templates ask for, which refuse much else."""
    roles = ["system"] if draw.random() < 0.4 else []
    for _ in range(draw.randrange(1, 4)):
        roles.append("user")
        if draw.random() < 0.3:
            roles += ["assistant", *["tool"] * draw.choice((1, 1, 2))]
        if draw.random() < 0.8:
            roles.append("assistant")
    way = draw.random()
    if way < 0.2:
        roles.insert(draw.randrange(len(roles) + 1), draw.choice(ROLES))
    elif way < 0.3:
        roles[draw.randrange(len(roles))] = draw.choice(ODD_ROLES)
    return roles


def drawn(seed: str, count: int) -> dict[str, Variables]:
    """Variables of `count` renders, by the name of each."""
    draw = random.Random(seed)
    made: dict[str, Variables] = {}
    for number in range(count):
        variables: Variables = {
            "messages": [message(draw, role) for role in _roles(draw)],
            "add_generation_prompt": draw.random() < 0.5,
            "tools": None,
            "documents": None,
        }
        if draw.random() < 0.4:
            variables["tools"] = [tool(draw) for _ in range(draw.randrange(3))]
        if draw.random() < 0.1:
            variables["documents"] = [{"title": "A", "text": draw.choice(TEXTS)}]
        for name in ("enable_thinking", "thinking", "tools_in_user_message", "continue_final"):
            if draw.random() < 0.15:
                variables[name] = draw.choice((True, False, None))
        if draw.random() < 0.1:
            variables["date_string"] = draw.choice(TEXTS)
        if draw.random() < 0.05:
            variables["custom_tools"] = [tool(draw)]
        if draw.random() < 0.05:
            variables["reasoning_effort"] = draw.choice(("low", "high"))
        made[f"conversation {number} of {seed}"] = variables
    return made
