"""Writes the C++ views of a schema: a class for each table, and the layout for the verifier."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from codegen.schema.model import SCALAR_BYTES, EnumDef, Field, Kind, Schema, Table, UnionDef

_SCALARS = {
    "bool": "bool",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
}


def emit(schema: Schema, command: str, include: Callable[[Path], str]) -> str:
    """The text of the header for `schema`.

    Args:
        schema: the schema; the definitions of included files come from their own headers.
        command: the command that the header names as its generator.
        include: gives the name under which the header of an .fbs file is included.
    """
    inner = [*_definitions(schema)]
    if schema.root:
        inner += [*_root(schema)]
    return "\n".join(
        [
            *_comment(schema.doc),
            "//",
            f"// Made from schema/{schema.path.name} by `{command}`; edit that file instead.",
            "#pragma once",
            "",
            *(f'#include "{include(s.path)}"' for s in schema.includes),
            '#include "rushlight/program/flatbuffer.h"',
            "",
            *(f"namespace {part} {{" for part in schema.namespace.split(".")),
            "",
            *inner,
            *(f"}}  // namespace {part}" for part in reversed(schema.namespace.split("."))),
            "",
        ]
    )


def _comment(text: str, indent: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        text, 100, initial_indent=f"{indent}// ", subsequent_indent=f"{indent}// "
    )


def _definitions(schema: Schema) -> Iterator[str]:
    for enum in schema.enums.values():
        yield from _enum(enum)
    if "Version" in schema.enums:
        yield f"constexpr uint32_t kVersion = {schema.newest};  // the newest that is read"
        yield ""
    for union in schema.unions.values():
        yield from _union(union)
    for table in schema.in_order():
        yield from _table(schema, table)


def _enum(enum: EnumDef) -> Iterator[str]:
    yield from _comment(enum.doc)
    yield f"enum class {enum.name} : {_SCALARS[enum.base]} {{"
    yield from (f"  {name} = {number}," for name, number in enum.members.items())
    yield "};"
    yield ""


def _union(union: UnionDef) -> Iterator[str]:
    yield from _comment(union.doc)
    yield f"enum class {union.name} : uint8_t {{"
    yield "  NONE = 0,"
    yield from (f"  {name} = {number}," for number, name in enumerate(union.members, 1))
    yield "};"
    yield ""


def _table(schema: Schema, table: Table) -> Iterator[str]:
    yield from _comment(table.doc)
    yield f"class {table.name} : public Table {{"
    yield " public:"
    yield "  using Table::Table;"
    for field in table.fields:
        yield from _comment(field.doc, "  ")
        yield from _getters(schema, field)
        if field.kind is not Kind.SCALAR:
            at = field.id + 1 if field.kind is Kind.UNION else field.id
            yield from _method("bool", f"has_{field.name}", f"field({at}) != nullptr")
    yield "};"
    yield ""


def _method(result: str, name: str, value: str) -> Iterator[str]:
    line = f"  {result} {name}() const {{ return {value}; }}"
    if len(line) <= 100:
        yield line
    else:
        yield f"  {result} {name}() const {{"
        line = f"    return {value};"
        if len(line) <= 100:
            yield line
        else:  # a call: its arguments go to the next line
            callee, _, rest = value.partition("(")
            yield f"    return {callee}("
            yield f"        {rest};"
        yield "  }"


def _scalar_type(type_name: str) -> str:
    return _SCALARS.get(type_name, type_name)


def _getters(schema: Schema, field: Field) -> Iterator[str]:
    name, at = field.name, field.id
    if field.kind is Kind.SCALAR:
        kind = _scalar_type(field.type)
        default = f"{kind}::{field.default}" if schema.enum(field.type) else _literal(field)
        yield from _method(kind, name, f"scalar<{kind}>({at}, {default})")
    elif field.kind is Kind.STRING:
        yield from _method("StringView", name, f"string({at})")
    elif field.kind is Kind.UNION:
        union = schema.union(field.type)
        assert union is not None
        kind = union.name
        yield from _method(kind, f"{name}_type", f"scalar<{kind}>({at}, {kind}::NONE)")
        yield "  // Absent unless the type is this one."
        for member, table in union.members.items():
            value = f"{table}(member({at}, static_cast<uint8_t>({kind}::{member})))"
            yield from _method(table, f"{name}_as_{member}", value)
    else:
        view = {
            Kind.BYTES: "Vector<uint8_t>",
            Kind.NUMBERS: f"Vector<{_scalar_type(field.type)}>",
            Kind.TABLE: field.type,
            Kind.TABLES: f"Tables<{field.type}>",
        }[field.kind]
        yield from _method(view, name, f"{view}(target({at}))")


def _literal(field: Field) -> str:
    if isinstance(field.default, bool):
        return "true" if field.default else "false"
    return repr(field.default)


def _root(schema: Schema) -> Iterator[str]:
    """The verifier's layout of all tables that a file can hold, and the functions that open one."""
    tables = schema.reachable()
    number = {table.name: i for i, table in enumerate(tables)}
    unions = list(dict.fromkeys(f.type for t in tables for f in t.fields if f.kind is Kind.UNION))
    layout = f"{schema.path.stem}_layout"
    yield "// What verify_flatbuffer walks."
    yield f"namespace {layout} {{"
    yield ""
    yield "inline constexpr FieldLayout kFields[] = {"
    first: list[int] = []
    at = 0
    for table in tables:
        first.append(at)
        at += table.slots
        yield f"    // {table.name}"
        yield from _aligned(_layouts(schema, table, number, unions))
    yield "};"
    yield "inline constexpr TableLayout kTables[] = {"
    starts = zip(tables, first, strict=True)
    yield from _aligned(
        [(f"{{{start}, {t.slots}}},", f"{number[t.name]} {t.name}") for t, start in starts]
    )
    yield "};"
    members: list[tuple[str, str]] = []
    rows = []
    for name in unions:
        union = schema.union(name)
        assert union is not None
        rows.append((f"{{{len(members)}, {len(union.members)}}},", name))
        members += [(f"{number[table]},", m) for m, table in union.members.items()]
    if unions:
        yield "inline constexpr UnionLayout kUnions[] = {"
        yield from _aligned(rows)
        yield "};"
        yield "inline constexpr uint8_t kMembers[] = {"
        yield from _aligned(members)
        yield "};"
    parts = "kUnions, kMembers" if unions else "nullptr, nullptr"
    yield f"inline constexpr Layout k{schema.root} = {{kFields, kTables, {parts}}};"
    yield ""
    yield f"}}  // namespace {layout}"
    yield ""
    yield f'inline constexpr char k{schema.root}Identifier[] = "{schema.identifier}";'
    yield ""
    yield "// True if the buffer can be read through these views; says nothing of its meaning."
    yield f"inline bool verify_{schema.root}(const uint8_t* data, size_t size) {{"
    yield f"  return verify_flatbuffer(data, size, {layout}::k{schema.root});"
    yield "}"
    yield "// The root of a buffer that was verified."
    head = f"inline {schema.root} root_{schema.root}(const uint8_t* data) {{"
    line = f"{head} return {schema.root}(follow(data)); }}"
    body = f"  return {schema.root}(follow(data));"
    yield from [line] if len(line) <= 100 else [head, body, "}"]
    yield ""


def _layouts(
    schema: Schema, table: Table, number: dict[str, int], unions: list[str]
) -> list[tuple[str, str]]:
    """The entries of all fields, and of ids that no field has: what is there is not read."""
    rows: list[tuple[str, str]] = []
    for field in table.fields:
        rows += [("{FieldKind::Scalar, 0},", "no field")] * (field.id - len(rows))
        rows += _layout(schema, field, number, unions)
    return rows


def _layout(
    schema: Schema, field: Field, number: dict[str, int], unions: list[str]
) -> list[tuple[str, str]]:
    """The entries of one field, each with its comment."""
    if field.kind in (Kind.SCALAR, Kind.NUMBERS, Kind.BYTES):
        enum = schema.enum(field.type)
        log2 = SCALAR_BYTES[enum.base if enum else field.type].bit_length() - 1
        kind = "Scalar" if field.kind is Kind.SCALAR else "Vector"
        return [(f"{{FieldKind::{kind}, {log2}}},", field.name)]
    if field.kind is Kind.STRING:
        return [("{FieldKind::String, 0},", field.name)]
    if field.kind is Kind.UNION:
        index = unions.index(field.type)
        return [
            (f"{{FieldKind::Union, {index}}},", f"{field.name}_type"),
            ("{FieldKind::UnionValue, 0},", field.name),
        ]
    kind = "Table" if field.kind is Kind.TABLE else "Tables"
    return [(f"{{FieldKind::{kind}, {number[field.type]}}},", field.name)]


def _aligned(rows: list[tuple[str, str]]) -> Iterator[str]:
    """Rows of an array with their comments in one column, as clang-format aligns them."""
    width = max((len(text) for text, _ in rows), default=0)
    yield from (f"    {text:<{width}}  // {comment}" for text, comment in rows)
