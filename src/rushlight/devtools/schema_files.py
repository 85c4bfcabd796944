"""The schemas of ExecuTorch's files as text for flatc, and bundled programs as flatc's JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from rushlight.errors import Code, ExportError
from rushlight.files import write_text
from rushlight.schema import bundled_program as fb
from rushlight.schema import codec, etdump
from rushlight.schema.common import ScalarType
from rushlight.schema.json_text import json_to_dataclass

BUNDLED_PROGRAM_SCHEMA_NAME = "bundled_program_schema"
ETDUMP_FLATCC_SCHEMA_NAME = "etdump_schema_flatcc"
SCALAR_TYPE_SCHEMA_NAME = "scalar_type"
"""The names of schemas that `write_schema` writes."""

_ENUMS_SPACE = "executorch_flatbuffer"
_WORDS = {
    "?": "bool",
    "b": "byte",
    "B": "ubyte",
    "h": "short",
    "H": "ushort",
    "i": "int",
    "I": "uint",
    "q": "long",
    "Q": "ulong",
    "f": "float",
    "d": "double",
}


class _Schema(NamedTuple):
    format: codec.Format
    namespace: str
    extension: str


_SCHEMAS = {
    BUNDLED_PROGRAM_SCHEMA_NAME: _Schema(fb.BUNDLED_PROGRAM, "bundled_program_flatbuffer", "bpte"),
    ETDUMP_FLATCC_SCHEMA_NAME: _Schema(etdump.ETDUMP, "etdump", "etdp"),
}


def write_schema(d: str | os.PathLike[str], schema_name: str) -> None:
    """Write a schema, as `SCHEMA_NAME.fbs`, for flatc; the others include that of element types.

    Args:
        d: the folder.
        schema_name: one of the three above.

    Raises:
        ExportError: there is none of that name.
    """
    if schema_name == SCALAR_TYPE_SCHEMA_NAME:
        lines = [f"namespace {_ENUMS_SPACE};", *_enum(ScalarType, "b")]
    elif schema_name in _SCHEMAS:
        lines = list(_lines(_SCHEMAS[schema_name]))
    else:
        raise ExportError(
            f"there is no schema {schema_name!r}: choose one of "
            f"{', '.join((*_SCHEMAS, SCALAR_TYPE_SCHEMA_NAME))}",
            code=Code.NOT_FOUND,
        )
    write_text(Path(d) / f"{schema_name}.fbs", "\n".join(lines) + "\n")


def _lines(schema: _Schema) -> Iterator[str]:
    format = schema.format
    yield f'include "{SCALAR_TYPE_SCHEMA_NAME}.fbs";'
    yield f"namespace {schema.namespace};"
    yield f'file_identifier "{format.identifier.decode()}";'
    yield f'file_extension "{schema.extension}";'
    told: set[str] = {ScalarType.__name__}
    waiting = [format.root]
    for table in waiting:
        fields = list(_without_gap(format.tables[table]))
        for f in fields:
            if isinstance(f, codec.Scalar) and f.enum is not None and f.enum.__name__ not in told:
                told.add(f.enum.__name__)
                yield from _enum(f.enum, f.letter)
            if isinstance(f, codec.Union):
                members = ", ".join(member.__name__ for member in f.members)
                yield f"union {table.__name__}Union {{ {members} }}"
            waiting += (used for used in _tables_of(f) if used not in waiting)
        yield f"table {table.__name__} {{"
        yield from (f"  {f.name}: {_type(f, table)};" for f in fields)
        yield "}"
    yield f"root_type {format.root.__name__};"


def _without_gap(fields: tuple[codec.Field, ...]) -> Iterator[codec.Field]:
    """The fields up to the first slot that none has: those behind it are Rushlight's own."""
    slot = 0
    for f in fields:
        if f.slot != slot:
            return
        yield f
        slot += 2 if isinstance(f, codec.Union) else 1


def _tables_of(f: codec.Field) -> tuple[type, ...]:
    if isinstance(f, codec.Union):
        return f.members
    return (f.table,) if isinstance(f, codec.Child | codec.Children) else ()


def _enum(enum: type[IntEnum], letter: str) -> Iterator[str]:
    yield f"enum {enum.__name__} : {_WORDS[letter]} {{"
    yield from (f"  {_member(member)} = {int(member)}," for member in enum)
    yield "}"


def _member(member: IntEnum) -> str:
    """The name of a member in ExecuTorch's schemas."""
    if isinstance(member, ScalarType):
        return member.name.upper()
    return "".join(word.capitalize() for word in member.name.split("_"))


def _type(f: codec.Field, table: type) -> str:
    if isinstance(f, codec.Scalar) and f.enum is not None:
        space = f"{_ENUMS_SPACE}." if f.enum is ScalarType else ""
        return f"{space}{f.enum.__name__} = {_member(f.enum(int(f.default)))}"
    if isinstance(f, codec.Scalar):
        return f"{_WORDS[f.letter]} = {json.dumps(f.default)}"
    if isinstance(f, codec.Text):
        return "string"
    if isinstance(f, codec.Bytes):
        return "[ubyte]" + (f" (force_align: {f.align})" if f.align > 1 else "")
    if isinstance(f, codec.Numbers):
        return f"[{_WORDS[f.letter]}]"
    if isinstance(f, codec.Union):
        return f"{table.__name__}Union"
    return f"[{f.table.__name__}]" if isinstance(f, codec.Children) else f.table.__name__


def serialize_from_bundled_program_to_json(bundled_program: fb.BundledProgram) -> str:
    """The tables of a bundled program as JSON, with numbers for element types, and without what is
    absent.

    Args:
        bundled_program: as `BundledProgram.serialize_to_schema` gives them.
    """
    return json.dumps(_plain(bundled_program, with_names=False))


def deserialize_from_json_to_bundled_program(program_json: str | bytes) -> fb.BundledProgram:
    """The tables of a bundled program from JSON, in which element types may be names.

    Args:
        program_json: of `serialize_from_bundled_program_to_json`, `convert_from_flatbuffer` or
            flatc.

    Raises:
        TypeError: a field is missing.
    """
    made = json_to_dataclass(json.loads(program_json), fb.BundledProgram)
    assert isinstance(made, fb.BundledProgram)
    return made


def convert_to_flatbuffer(program_json: str | bytes) -> bytes:
    """The file (.bpte) of a bundled program in JSON.

    Args:
        program_json: as for `deserialize_from_json_to_bundled_program`.

    Raises:
        TypeError, ExportError: a field is missing, or has a value that does not fit.
    """
    return fb.pack(deserialize_from_json_to_bundled_program(program_json))


def convert_from_flatbuffer(program_flatbuffer: codec.Buffer) -> bytes:
    """A bundled program as JSON, as flatc writes it: with names of element types, and without what
    is absent.

    Args:
        program_flatbuffer: the file.

    Raises:
        LoadError: it is damaged.
    """
    return json.dumps(_plain(fb.unpack(program_flatbuffer), with_names=True)).encode()


def _plain(value: Any, with_names: bool) -> Any:
    """A value as JSON has it."""
    if is_dataclass(value):
        told: dict[str, Any] = {}
        for f in fb.BUNDLED_PROGRAM.tables[type(value)]:
            item = getattr(value, f.name)
            if item is not None and isinstance(f, codec.Union):
                told[f"{f.name}_type"] = type(item).__name__
            if item is not None:
                told[f.name] = _plain(item, with_names)
        return told
    if isinstance(value, IntEnum) and with_names:
        return value.name
    if isinstance(value, list):
        return [_plain(item, with_names) for item in value]
    return list(value) if isinstance(value, codec.Buffer) else value
