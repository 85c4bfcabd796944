"""The messages of a conversation: from OpenAI's form to what chat templates read."""

from __future__ import annotations

import json
from typing import Any

from rushlight.llm.serve.errors import bad
from rushlight.llm.serve.fields import Fields, shown

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def read_messages(fields: Fields) -> list[dict[str, Any]]:
    """The conversation of a request, as a chat template takes it.

    Args:
        fields: of the request; "messages" is read.

    Raises:
        ApiError: a message is not as it must be.
    """
    messages = fields.need("messages", list)
    if not messages:
        raise bad("messages", "is empty: give at least one message")
    return [_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def _message(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise bad(where, f"is {shown(given)}: give an object with 'role' and 'content'")
    fields = Fields(given, where)
    role = fields.need("role", str)
    if role not in _ROLES:
        raise bad(f"{where}.role", f"is {shown(role)}: give one of {', '.join(_ROLES)}")
    content = fields.take("content")
    calls = fields.read("tool_calls", list) if role == "assistant" else None
    message: dict[str, Any] = {"role": _ROLES[role]}
    if content is None and role != "assistant":
        raise bad(f"{where}.content", "is missing: give a text")
    message["content"] = _text(content, f"{where}.content") if content is not None else ""
    if calls:
        message["tool_calls"] = [
            _call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(calls)
        ]
    names = ["name"]
    if role == "assistant":
        names.append("reasoning_content")
    if role == "tool":
        names.append("tool_call_id")
    for name in names:
        value = fields.read(name, str)
        if value is not None:
            message[name] = value
    fields.finish()
    return message


def _text(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise bad(where, f"is {shown(content)}: give a text, or an array of parts")
    return "".join(_part(part, f"{where}[{i}]") for i, part in enumerate(content))


def _part(part: Any, where: str) -> str:
    if not isinstance(part, dict):
        raise bad(where, f'is {shown(part)}: give {{"type": "text", "text": ...}}')
    fields = Fields(part, where)
    kind = fields.need("type", str)
    if kind != "text":
        raise bad(f"{where}.type", f"is {shown(kind)}: the model reads text alone")
    text = fields.need("text", str)
    fields.finish()
    return text


def _call(given: Any, where: str) -> dict[str, Any]:
    """A call that the model made. Templates read its arguments as an object."""
    if not isinstance(given, dict):
        raise bad(where, f"is {shown(given)}: give a call of a function")
    fields = Fields(given, where)
    id = fields.read("id", str)
    fields.only("type", ("function",), "give 'function'")
    fields.take("index")  # in a call that was put together from a stream
    function = Fields(fields.need("function", dict), f"{where}.function")
    fields.finish()
    name = function.need("name", str)
    text = function.read("arguments", str, "{}")
    function.finish()
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise bad(f"{where}.function.arguments", "is not the text of a JSON object")
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return call if id is None else {"id": id, **call}
