"""What calls have beside a prompt: messages, and variables of the chat template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight.llm.options import refuse

# What to do for variables that a template has from elsewhere.
_INSTEAD = {
    "messages": "give the messages as the prompt",
    "tools": "write tools=",
    "add_generation_prompt": "a generation always has it; encode_chat() can leave it out",
}


def json_of(document: Mapping[str, Any]) -> str:
    """An object as JSON.

    Raises:
        RunError: a member cannot be written, which is named.
    """
    members = []
    for name, value in document.items():
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise refuse(f"{name} must be JSON: {error}") from None
        members.append(f"{json.dumps(name)}: {text}")
    return "{" + ", ".join(members) + "}"


def chat_arguments(prompt: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a call has for the chat template.

    Args:
        prompt: what is continued.
        arguments: the call's; what is read here is taken out of them.

    Raises:
        RunError: they are for messages and the prompt is none, or a variable has its own argument.
    """
    names = [name for name in ("tools", "template") if arguments.get(name) is not None]
    if names and not is_conversation(prompt):
        raise refuse(f"{names[0]}= is for a prompt of messages: leave it out, or give messages")
    tools, template = arguments.pop("tools", None), arguments.pop("template", None)
    if template is None:
        template = {}
    if not isinstance(template, Mapping) or not all(isinstance(name, str) for name in template):
        raise refuse(f"template={template!r}: give a dict of the template's variables")
    for name, advice in _INSTEAD.items():
        if name in template:
            raise refuse(f"template has {name!r}: {advice}")
    return {"tools": tools, **template}


def is_conversation(prompt: Any) -> bool:
    """Whether a prompt is a list of messages.

    Args:
        prompt: what a caller gave.
    """
    is_list = isinstance(prompt, Sequence) and not isinstance(prompt, str | bytes)
    return is_list and len(prompt) > 0 and isinstance(prompt[0], Mapping)
