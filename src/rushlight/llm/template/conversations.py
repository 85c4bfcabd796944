"""Conversations with which a chat template is checked: what templates treat differently."""

from __future__ import annotations

from typing import Any

Variables = dict[str, Any]

WEATHER: Variables = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather: \"now\", <soon> & 'later'",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city, e.g. Zürich 🏔"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "places": {"type": "array", "items": {"type": "number"}},
            },
            "required": ["city"],
        },
    },
}
CLOCK: Variables = {
    "type": "function",
    "function": {
        "name": "now",
        "description": "The time",
        "parameters": {"type": "object", "properties": {}},
    },
}


def _say(role: str, content: Any, **rest: Any) -> Variables:
    return {"role": role, "content": content, **rest}


def _call(name: str, arguments: Any, id: str = "abcdefgh1") -> Variables:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


_HI = _say("user", "Hi there")
_HELLO = _say("assistant", "Hello! How can I help?")
_SYSTEM = _say("system", "  You are helpful.\n")
_TEXTS = _say("user", [{"type": "text", "text": " What is "}, {"type": "text", "text": "this? "}])
_IMAGE = _say("user", [{"type": "image"}, {"type": "text", "text": "What is this?"}])
_UNICODE = _say("user", "  Grüße, 世界! 🦊\u200b \u00a0İŞ\t\u2028<|im_end|>{{ 1 }} {% if %} \\n ")
_CALLS = _say("assistant", "", tool_calls=[_call("get_weather", {"city": "Zürich", "days": 2})])
_THOUGHT = _say("assistant", "<think>\nHm, let me see.\n</think>\n\nIt is 4.")
_ANSWER = _say("tool", '{"temperature": 21.5}', tool_call_id="abcdefgh1", name="get_weather")

_CONVERSATIONS: dict[str, list[Variables]] = {
    "one message": [_HI],
    "a system message": [_SYSTEM, _HI],
    "several turns": [_SYSTEM, _HI, _HELLO, _say("user", "What is 2 + 2?\n\n"), _HELLO],
    "a message of the assistant at the end": [_HI, _say("assistant", "I think that")],
    "Unicode, and text like that of templates": [_UNICODE, _HELLO, _say("user", "")],
    "content in parts": [_TEXTS],
    "a system message in parts": [_say("system", [{"type": "text", "text": "Be brief."}]), _HI],
    "an image": [_IMAGE],
    "no messages": [],
    "a system message alone": [_SYSTEM],
    "two messages of the user": [_HI, _say("user", "Are you there?")],
    "a message without content": [_HI, _say("assistant", None), _say("user", "Well?")],
    "an unknown role": [_HI, _say("critic", "Good.")],
    "reasoning in the text": [_HI, _THOUGHT, _say("user", "And 3 + 3?"), _THOUGHT],
    "reasoning": [_HI, _say("assistant", "4", reasoning_content="2 + 2"), _HI],
    "a call and its answer": [_HI, _CALLS, _ANSWER],
    "a call, its answer and a reply": [_SYSTEM, _HI, _CALLS, _ANSWER, _HELLO, _HI],
    "two calls": [
        _HI,
        _say(
            "assistant",
            None,
            tool_calls=[
                _call("now", {}),
                _call("get_weather", {"city": "a \"b\" <c> & 'd'\n", "x": [1, 2.5, None, True]}),
            ],
        ),
        _ANSWER,
        _say("tool", "12:00", tool_call_id="abcdefgh2"),
        _say("user", "Thanks"),
    ],
    "a call with arguments as text": [
        _HI,
        _say("assistant", "Let me look.", tool_calls=[_call("now", '{"zone": "CET"}')]),
        _say("tool", {"hours": 12, "content": [1, 2]}, tool_call_id="abcdefgh1"),
    ],
}
_EXTRAS: dict[str, Variables] = {
    "": {"add_generation_prompt": True},
    "without the beginning of a reply": {"add_generation_prompt": False},
    "with tools": {"add_generation_prompt": True, "tools": [WEATHER, CLOCK]},
    "without thinking": {"add_generation_prompt": True, "enable_thinking": False},
    "with thinking and tools": {
        "add_generation_prompt": True,
        "enable_thinking": True,
        "tools": [CLOCK],
    },
    "with documents": {
        "add_generation_prompt": True,
        "documents": [{"title": "Foxes", "text": "They are red."}],
    },
}


def conversations() -> dict[str, Variables]:
    """The variables of each render, by what is special about it."""
    return {
        f"{name}{', ' if extra else ''}{extra}": {
            "tools": None,
            "documents": None,
            **variables,
            "messages": messages,
        }
        for name, messages in _CONVERSATIONS.items()
        for extra, variables in _EXTRAS.items()
    }
