"""Writes the Python dataclasses of a schema, and their description for the codec."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from codegen.schema.model import EnumDef, Field, Kind, Schema, Table, UnionDef

_LETTERS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}


def emit(schema: Schema, command: str, module: Callable[[Path], str], code: str) -> str:
    """The text of the module for `schema`.

    Args:
        schema: the schema; included definitions are imported and exported again.
        command: the command that the module names as its generator.
        module: gives the module of an .fbs file.
        code: the error code for bad files.
    """
    body: list[str] = []
    for enum in schema.enums.values():
        body += _enum(enum)
    for table in _with_unions(schema):
        body += _union(table) if isinstance(table, UnionDef) else _table(schema, table)
    if schema.root:
        body += _format(schema, code)
    return "\n".join([*_head(schema, command, module), *body])


def _head(schema: Schema, command: str, module: Callable[[Path], str]) -> Iterator[str]:
    title, _, rest = schema.doc.partition(". ")
    yield f'"""{title.rstrip(".")}.'
    yield ""
    if rest:
        yield from textwrap.wrap(rest, 100)
        yield ""
    yield f"Made from schema/{schema.path.name} by `{command}`; edit that file instead."
    yield '"""'
    yield ""
    yield "from __future__ import annotations"
    yield ""
    if schema.root:
        yield "from collections.abc import Mapping"
    fields = [f for t in schema.tables.values() for f in t.fields]
    makes = any(" = field(" in _annotation(schema, f) for f in fields)
    yield f"from dataclasses import dataclass{', field' if makes else ''}"
    if schema.enums:
        yield "from enum import IntEnum"
    if schema.root:
        yield ""
        yield "from rushlight.errors import Code"
        used = "codec, versions" if any(schema.since()) else "codec"
        yield f"from rushlight.schema import {used}"
    for included in schema.includes:
        for name in sorted((*included.enums, *included.tables)):
            yield f"from {module(included.path)} import {name} as {name}"
    yield ""


def _with_unions(schema: Schema) -> Iterator[Table | UnionDef]:
    """Tables in order, each union right after the last of its members."""
    waiting = dict(schema.unions)
    seen: set[str] = set()
    for table in schema.in_order():
        for name, union in list(waiting.items()):
            if seen.issuperset(union.members.values()):
                yield waiting.pop(name)
        seen.add(table.name)
        yield table
    yield from waiting.values()


def _docstring(doc: str, indent: str = "    ") -> Iterator[str]:
    if doc and len(doc) + len(indent) + 6 <= 100:
        yield f'{indent}"""{doc}"""'
    elif doc:
        first, _, rest = doc.partition(". ")
        yield from textwrap.wrap(
            f'"""{first.rstrip(".")}.', 100, initial_indent=indent, subsequent_indent=indent
        )
        if rest:
            yield ""
            yield from textwrap.wrap(rest, 100, initial_indent=indent, subsequent_indent=indent)
        yield f'{indent}"""'


def _enum(enum: EnumDef) -> Iterator[str]:
    yield ""
    yield f"class {enum.name}(IntEnum):"
    if enum.doc:
        yield from _docstring(enum.doc)
        yield ""
    yield from (f"    {name} = {number}" for name, number in enum.members.items())
    yield ""


def _union(union: UnionDef) -> Iterator[str]:
    for member, table in union.members.items():
        if member != table:
            yield from ("", "@dataclass(slots=True)", f"class {member}({table}):")
            yield from (*_docstring(f"{table} as a {union.name}."), "")
    yield ""
    if union.doc:
        yield f"# {union.doc}"
    line = f"{union.name} = {' | '.join(union.members)}"
    if len(line) <= 100:
        yield line
    else:
        yield f"{union.name} = ("
        first, *others = union.members
        yield f"    {first}"
        yield from (f"    | {member}" for member in others)
        yield ")"
    yield ""


def _table(schema: Schema, table: Table) -> Iterator[str]:
    yield ""
    yield "@dataclass(slots=True)"
    yield f"class {table.name}:"
    yield from _docstring(table.doc)
    if table.doc and table.fields:
        yield ""
    for f in table.fields:
        yield from textwrap.wrap(f.doc, 100, initial_indent="    #: ", subsequent_indent="    #: ")
        yield f"    {f.name}: {_annotation(schema, f)}"
    if not table.fields and not table.doc:
        yield "    pass"
    yield ""


def _annotation(schema: Schema, f: Field) -> str:
    """The type of a field and its default."""
    if f.kind is Kind.UNION and f.optional:
        return f"{f.type} | None = None"
    if f.kind is Kind.UNION:  # without a default, so keyword-only after fields with one
        return f.type if f.id == 0 else f"{f.type} = field(kw_only=True)"
    if f.kind is Kind.SCALAR:
        if schema.enum(f.type):
            return f"{f.type} = {f.type}.{f.default}"
        return f"{_number(f.type)} = {f.default}"
    plain = {
        Kind.STRING: "str",
        Kind.BYTES: "codec.Buffer",
        Kind.NUMBERS: f"list[{_number(f.type)}]",
        Kind.TABLE: f.type,
        Kind.TABLES: f"list[{f.type}]",
    }[f.kind]
    if f.optional:
        return f"{plain} | None = None"
    default = {
        Kind.STRING: '""',
        Kind.BYTES: 'b""',
        Kind.TABLE: f"field(default_factory={f.type})",
    }.get(f.kind, "field(default_factory=list)")
    return f"{plain} = {default}"


def _number(type_name: str) -> str:
    if type_name == "bool":
        return "bool"
    return "float" if type_name.startswith("float") else "int"


def _format(schema: Schema, code: str) -> Iterator[str]:
    yield ""
    sharing = _sharing(schema)
    kind = "dict" if sharing else "Mapping"
    yield f"_TABLES: {kind}[type, tuple[codec.Field, ...]] = {{"
    for table in schema.reachable():
        if not table.fields:
            yield f"    {table.name}: (),"
            continue
        if len(table.fields) == 1 and table.fields[0].kind is not Kind.UNION:
            yield f"    {table.name}: (codec.{_call(schema, table.fields[0])},),"
            continue
        yield f"    {table.name}: ("
        for f in table.fields:
            yield from _entry(schema, f)
        yield "    ),"
    yield "}"
    if sharing:
        yield "_member: type"
    for table_name, members in sharing.items():
        line = f"for _member in ({', '.join(members)}{',' if len(members) == 1 else ''}):"
        if len(line) <= 100:
            yield line
        else:
            yield from ("for _member in (", *(f"    {member}," for member in members), "):")
        yield f"    _TABLES[_member] = _TABLES[{table_name}]"
    name = schema.path.stem.upper()
    yield ""
    since = list(schema.since())
    if since:
        yield "_SINCE = {"
        yield from (f'    ({owner}, "{field}"): {version},' for owner, field, version in since)
        yield "}"
        yield ""
    facts = f'{schema.root}, b"{schema.identifier}", _TABLES, Code.{code}'
    yield f"{name} = codec.Format({facts}{', _SINCE' if since else ''})"
    yield ""
    root, variable = schema.root, schema.path.stem
    yield ""
    yield f"def pack({variable}: {root}, alignments: Mapping[type, int] | None = None) -> bytes:"
    yield f'    """The flatbuffer of `{variable}`; see :func:`rushlight.schema.codec.pack`."""'
    yield f"    return codec.pack({name}, {variable}, alignments)"
    yield ""
    yield ""
    yield f"def unpack(data: codec.Buffer) -> {root}:"
    yield '    """The objects in `data`; see :func:`rushlight.schema.codec.unpack`."""'
    yield f"    {variable} = codec.unpack({name}, data)"
    yield f"    assert isinstance({variable}, {root})"
    yield f"    return {variable}"
    yield ""
    if since:
        yield ""
        yield f"def least_version({variable}: {root}) -> int:"
        yield f'    """The least version that has all fields which `{variable}` uses."""'
        yield f"    return versions.least_version({name}, {variable})"
        yield ""


def _sharing(schema: Schema) -> dict[str, list[str]]:
    """For each table that members of unions use under other names, the names."""
    members: dict[str, list[str]] = {}
    for union in schema.unions.values():
        for member, table in union.members.items():
            if member != table:
                members.setdefault(table, []).append(member)
    return members


def _entry(schema: Schema, f: Field) -> Iterator[str]:
    """The codec's description of one field."""
    indent = " " * 8
    if f.kind is Kind.UNION:
        union = schema.union(f.type)
        assert union is not None
        yield f"{indent}codec.Union("
        yield f'{indent}    "{f.name}",'
        yield f"{indent}    {f.id},"
        yield f"{indent}    ("
        yield from (f"{indent}        {member}," for member in union.members)
        yield f"{indent}    ),"
        if f.optional:
            yield f"{indent}    optional=True,"
        yield f"{indent}),"
    else:
        yield f"{indent}codec.{_call(schema, f)},"


def _call(schema: Schema, f: Field) -> str:
    head = f'"{f.name}", {f.id}'
    optional = ", optional=True" if f.optional else ""
    if f.kind is Kind.SCALAR:
        enum = schema.enum(f.type)
        if enum is not None:
            return f'Scalar({head}, "{_LETTERS[enum.base]}", {f.type}.{f.default}, {f.type})'
        return f'Scalar({head}, "{_LETTERS[f.type]}", {f.default})'
    if f.kind is Kind.STRING:
        return f"Text({head}{optional})"
    if f.kind is Kind.BYTES:
        align = f", align={f.align}" if f.align > 1 else ""
        return f"Bytes({head}{align}{optional})"
    if f.kind is Kind.NUMBERS:
        return f'Numbers({head}, "{_LETTERS[f.type]}"{optional})'
    kind = "Child" if f.kind is Kind.TABLE else "Children"
    return f"{kind}({head}, {f.type}{optional})"
