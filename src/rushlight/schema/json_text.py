"""Dataclasses as JSON, and back; a field of several types is followed by the name of its type."""

from __future__ import annotations

import functools
import json
import types
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

_UNIONS = (Union, types.UnionType)


class DataclassEncoder(json.JSONEncoder):
    """Writes dataclasses as objects, and bytes as lists of numbers."""

    def default(self, o: Any) -> Any:
        """What stands for a value that JSON does not have."""
        if is_dataclass(o) and not isinstance(o, type):
            told: dict[str, Any] = {}
            hints = _hints(type(o))
            for field in fields(o):
                told[field.name] = getattr(o, field.name)
                if len(_choices(hints[field.name])) > 1:
                    told[f"{field.name}_type"] = type(told[field.name]).__name__
            return told
        if isinstance(o, bytes | bytearray | memoryview):
            return list(o)
        return super().default(o)


def json_to_dataclass(json_dict: Any, cls: Any) -> Any:
    """A value of JSON as one of a type.

    Args:
        json_dict: as `json.loads` gives what `DataclassEncoder` wrote.
        cls: the dataclass, or the type of a field.

    Raises:
        TypeError: a field is not there that must be.
    """
    choices = _choices(cls)
    if json_dict is None or not choices:
        return json_dict
    cls = choices[0]
    if is_dataclass(cls) and isinstance(cls, type):
        return cls(**_fields_of(json_dict, cls)) if isinstance(json_dict, dict) else json_dict
    if get_origin(cls) is list:
        return [json_to_dataclass(item, get_args(cls)[0]) for item in json_dict]
    if isinstance(cls, type) and issubclass(cls, Enum) and isinstance(json_dict, str):
        return cls[json_dict]
    return cls(json_dict) if isinstance(cls, type) else json_dict


def _fields_of(json_dict: dict[str, Any], cls: type) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, hint in _hints(cls).items():
        choices = _choices(hint)
        if name not in json_dict and type(None) not in get_args(hint):
            raise TypeError(f"there is no {name!r}, which {cls.__name__} must have")
        if len(choices) > 1 and (kind := json_dict.get(f"{name}_type")) is not None:
            choices = [choice for choice in choices if choice.__name__ == kind]
        value = json_dict.get(name)
        # Without the name of its type, a value of several types is left as JSON has it.
        values[name] = json_to_dataclass(value, choices[0]) if len(choices) == 1 else value
    return values


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def _choices(hint: Any) -> list[Any]:
    """The types of a value, without None; whatever holds bytes is one of them."""
    members = get_args(hint) if get_origin(hint) in _UNIONS else (hint,)
    if memoryview in members:
        members = (bytes,)
    return [member for member in members if member is not type(None)]
