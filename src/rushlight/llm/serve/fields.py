"""The fields of a request: each is read once, and what nobody read is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from rushlight.llm.serve.errors import ApiError, bad

T = TypeVar("T")
_NAMES = {
    bool: "true or false",
    int: "an integer",
    str: "a string",
    list: "an array",
    dict: "an object",
}
# What others call a field, or why there is none.
_ADVICE = {
    "functions": "write 'tools'",
    "function_call": "write 'tool_choice'",
    "suffix": "text is not inserted in the middle",
    "best_of": "write 'n'",
    "audio": "the model has no sound",
    "modalities": "the model writes text",
    "repeat_penalty": "write 'repetition_penalty'",
    "n_predict": "write 'max_tokens'",
    "dimensions": "embeddings have the model's own dimensions",
}


class Fields:
    """A JSON object while it is read. A field that is null counts as absent.

    Args:
        values: the object.
        where: the field that it is, for messages; "" for the whole body.
    """

    def __init__(self, values: Mapping[str, Any], where: str = "") -> None:
        self._left = {name: value for name, value in values.items() if value is not None}
        self._where = where

    def name(self, name: str) -> str:
        """The whole name of a field, for messages.

        Args:
            name: its own.
        """
        return f"{self._where}.{name}" if self._where else name

    def take(self, name: str) -> Any:
        """A field of any type; None if it is absent.

        Args:
            name: the field.
        """
        return self._left.pop(name, None)

    @overload
    def read(self, name: str, kind: type[T]) -> T | None: ...
    @overload
    def read(self, name: str, kind: type[T], default: T) -> T: ...
    def read(self, name: str, kind: type[T], default: T | None = None) -> T | None:
        """A field of one type.

        Args:
            name: the field.
            kind: bool, int, str, list or dict.
            default: what an absent one is.

        Raises:
            ApiError: it has another type.
        """
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise bad(self.name(name), f"is {shown(value)}: give {_NAMES[kind]}")
        return value

    def need(self, name: str, kind: type[T]) -> T:
        """A field that must be there.

        Args:
            name: the field.
            kind: as for `read`.

        Raises:
            ApiError: it is absent, or has another type.
        """
        value = self.read(name, kind)
        if value is None:
            raise bad(self.name(name), f"is missing: give {_NAMES[kind]}")
        return value

    def only(self, name: str, allowed: tuple[Any, ...], why: str) -> None:
        """Refuse a field but for values that change nothing.

        Args:
            name: the field.
            allowed: these values.
            why: what the server has instead.

        Raises:
            ApiError: it has another value.
        """
        value = self.take(name)
        if value is not None and value not in allowed:
            raise bad(self.name(name), f"is {shown(value)}: {why}")

    def finish(self) -> None:
        """Refuse the fields that were not read.

        Raises:
            ApiError: there are any.
        """
        for name in self._left:
            advice = _ADVICE.get(name, "leave it out; docs/llm/serve.md lists those that there are")
            told = self.name(name[:100])
            raise ApiError(
                400, f"there is no field '{told}': {advice}", param=told, code="unknown_parameter"
            )


def shown(value: Any) -> str:
    """A value for a message, cut short.

    Args:
        value: what came.
    """
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:97] + "..."
