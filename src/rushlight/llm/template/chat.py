"""Renders chat templates with the C++ interpreter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rushlight import _core
from rushlight.errors import Code, Error

Message = Mapping[str, Any]


class TemplateError(Error):
    """A chat template cannot be read, or refuses or fails to render a conversation."""


@dataclass(frozen=True)
class Prompt:
    """The text of a prompt.

    Attributes:
        text: the whole text.
        data: the parts of its UTF-8, as (begin, end), that came from messages and other variables.
            Only what is outside of them may be read as special tokens.
    """

    text: str
    data: tuple[tuple[int, int], ...]


class ChatTemplate:
    """A chat template, parsed once.

    Args:
        source: the template, in the part of Jinja that `docs/llm/template.md` lists.
        tokens: texts of special tokens by the names that templates have for them, such as
            `{"bos_token": "<s>"}`.
    """

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None) -> None:
        self._tokens = json.dumps(dict(tokens or {}))
        try:
            self._template = _core.ChatTemplate.parse(source)
        except _core.Failure as failure:
            raise _error(failure) from None

    def uses(self, name: str) -> bool:
        """Whether the template reads a variable, such as "tools" or "enable_thinking".

        Args:
            name: the variable's name.
        """
        return self._template.uses(name)

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        now: int = -1,
        **variables: Any,
    ) -> Prompt:
        """The prompt of a conversation.

        Args:
            messages: the conversation; each has a "role", and mostly a "content".
            tools: functions that the model may call, as JSON schemas.
            documents: texts that the model may read, each with a "title" and a "text".
            add_generation_prompt: whether the prompt ends with the beginning of a reply.
            now: the time for templates that write the date, in seconds since 1970 in local time;
                -1 is the clock's.
            variables: others that the template reads, such as `enable_thinking`.
        """
        every = {
            "messages": messages,
            "tools": tools,
            "documents": documents,
            "add_generation_prompt": add_generation_prompt,
            **variables,
        }
        try:
            text, data = self._template.render(_as_json(every), self._tokens, now)
        except _core.Failure as failure:
            raise _error(failure) from None
        return Prompt(text.decode(), tuple(data))


def _as_json(variables: Mapping[str, Any]) -> str:
    try:
        return json.dumps(variables, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise TemplateError(
            f"the variables of a chat template must be what JSON has: {error}",
            code=Code.INVALID_ARGUMENT,
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    raise TypeError(f"{type(value).__name__} is none")


def _error(failure: _core.Failure) -> TemplateError:
    code, message = failure.args[:2]
    return TemplateError(message, code=Code(code))
