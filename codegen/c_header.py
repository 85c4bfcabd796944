"""Reads a C header of ours: its structs, enumerations, functions and types of functions.

It knows the C of ``cpp/c_api/rushlight.h`` and of ``cpp/abi/rl_*_v1.h``, and raises
ValueError for anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = (
    ROOT / "cpp/abi/rl_value_v1.h",
    ROOT / "cpp/abi/rl_backend_v1.h",
    ROOT / "cpp/abi/rl_kernel_v1.h",
    ROOT / "cpp/c_api/rushlight.h",
)


@dataclass(frozen=True)
class Function:
    """A function, or a pointer to one; types as they are written, without names."""

    result: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.result}({', '.join(self.arguments) or 'void'})"


@dataclass(frozen=True)
class Field:
    """A field of a struct; `count` is the length of an array, as it is written."""

    name: str
    type: str | Function
    count: str = ""


@dataclass
class Header:
    """What some headers declare, in their order."""

    structs: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    opaque: list[str] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)
    aliases: dict[str, str | Function] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


def read_headers(paths: tuple[Path, ...] = HEADERS) -> Header:
    """What these headers declare.

    Args:
        paths: the headers; one that names types of another comes behind it.

    Raises:
        ValueError: if there is something else in one of them.
    """
    header = Header()
    for path in paths:
        for statement in _statements(path.read_text(encoding="utf-8")):
            _read(statement, header)
    return header


def _statements(text: str) -> Iterator[str]:
    """The declarations of a header, each on one line; functions with a body are left out."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)
    text = re.sub(r'extern\s+"C"\s*{', "", text)
    depth, start = 0, 0
    for match in re.finditer(r"[{};]", text):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        statement = " ".join(text[start : match.end()].split())
        if depth < 0:  # the end of extern "C"
            return
        if depth == 0 and match.group() == "}" and statement.startswith("static inline"):
            start = match.end()
        elif depth == 0 and match.group() == ";":
            yield statement[:-1].strip()
            start = match.end()


def _read(statement: str, header: Header) -> None:
    if match := re.fullmatch(r"enum \{(.*)\}", statement):
        for item in filter(None, (part.strip() for part in match[1].split(","))):
            name, value = (part.strip() for part in item.split("="))
            header.constants[name] = int(value, 0)
    elif match := re.fullmatch(r"typedef struct (\w+) \{(.*)\} \1", statement):
        fields = filter(None, (part.strip() for part in match[2].split(";")))
        header.structs[match[1]] = tuple(_field(part) for part in fields)
    elif match := re.fullmatch(r"typedef struct (\w+) \1", statement):
        header.opaque.append(match[1])
    elif match := re.fullmatch(r"typedef (.+?) ?\(\*(\w+)\)\((.*)\)", statement):
        header.aliases[match[2]] = Function(_type(match[1]), _arguments(match[3]))
    elif match := re.fullmatch(r"typedef (\w+) (\w+)", statement):
        header.aliases[match[2]] = match[1]
    elif match := re.fullmatch(r"RL_API (.+?) ?(\w+)\((.*)\)", statement):
        header.functions[match[2]] = Function(_type(match[1]), _arguments(match[3]))
    else:
        raise ValueError(f"not known in a header: {statement}")


def _field(text: str) -> Field:
    if match := re.fullmatch(r"(.+?) ?\(\*(\w+)\)\((.*)\)", text):
        return Field(match[2], Function(_type(match[1]), _arguments(match[3])))
    match = re.fullmatch(r"(.+?) ?(\w+)(?:\[(\w+)\])?", text)
    if match is None:
        raise ValueError(f"not known in a struct: {text}")
    return Field(match[2], _type(match[1]), match[3] or "")


def _arguments(text: str) -> tuple[str, ...]:
    if text == "void":
        return ()
    return tuple(_field(part.strip()).type for part in text.split(","))  # type: ignore[misc]


def _type(text: str) -> str:
    return re.sub(r"\s*\*", "*", " ".join(text.split()))
