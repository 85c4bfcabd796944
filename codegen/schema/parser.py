"""A parser for the part of the .fbs language that our schemas use.

It reads include, namespace, attribute, file_identifier, file_extension, root_type, enum, union and
table, with `///` documentation. The attribute `since` of a table, a field or a member of an enum is
the version of the file that added it, one of the enum `Version`; `id` of a field is its place in
the vtable, if it is not the one after the field before. Structs, fixed arrays, vectors of strings,
services and recursive tables are refused: our schemas do not need them, and without recursion the
verifier's stack is bounded.
"""

from __future__ import annotations

import re
from pathlib import Path

from codegen.schema.model import (
    SCALAR_BYTES,
    EnumDef,
    Field,
    Kind,
    Schema,
    Table,
    UnionDef,
)

_ALIASES = {
    "byte": "int8",
    "ubyte": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "float": "float32",
    "double": "float64",
}
_TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<doc>///[^\n]*) | (?P<comment>//[^\n]*)
      | (?P<string>"[^"\n]*") | (?P<word>[A-Za-z_][\w.]*)
      | (?P<number>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?) | (?P<mark>[{}()\[\]:;,=])""",
    re.VERBOSE,
)


class SchemaError(ValueError):
    """An .fbs file is wrong, or uses a part of the language that this parser does not support."""


class _Tokens:
    """The tokens of a file, each with the `///` lines before it."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._items: list[tuple[str, str, int, str]] = []  # kind, text, line, documentation
        self._at = 0
        at, line, doc = 0, 1, list[str]()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise SchemaError(f"{path}:{line}: cannot read {text[at : at + 20]!r}")
            kind, token = str(match.lastgroup), match.group()
            if kind == "doc":
                doc.append(token[3:].strip())
            elif kind not in ("space", "comment"):
                self._items.append((kind, token, line, " ".join(doc)))
                doc = []
            line += token.count("\n")
            at = match.end()
        self._items.append(("end", "", line, ""))

    def fail(self, message: str) -> SchemaError:
        return SchemaError(f"{self._path}:{self._items[self._at][2]}: {message}")

    @property
    def done(self) -> bool:
        return self._items[self._at][0] == "end"

    @property
    def doc(self) -> str:
        """The documentation before the next token."""
        return self._items[self._at][3]

    def take(self, kind: str) -> str:
        token, text, _, _ = self._items[self._at]
        if token != kind:
            raise self.fail(f"expected a {kind}, found {text!r}")
        self._at += 1
        return text

    def accept(self, mark: str) -> bool:
        if self._items[self._at][1] != mark:
            return False
        self._at += 1
        return True

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise self.fail(f"expected {mark!r}, found {self._items[self._at][1]!r}")

    def value(self) -> str:
        """A number or a word."""
        kind, text, _, _ = self._items[self._at]
        if kind not in ("number", "word"):
            raise self.fail(f"expected a value, found {text!r}")
        self._at += 1
        return text


def parse(path: Path) -> Schema:
    """Reads `path` and the files it includes.

    Raises:
        SchemaError: with file and line, when the file is wrong.
    """
    text = path.read_text(encoding="utf-8")
    return _Parser(path, text).parse()


class _Parser:
    def __init__(self, path: Path, text: str) -> None:
        self._schema = Schema(path=path, doc=_head(text))
        self._tokens = _Tokens(path, text)
        self._known_attributes = {"force_align", "id"}
        self._raw: list[tuple[Table, list[_RawField]]] = []

    def parse(self) -> Schema:
        tokens, schema = self._tokens, self._schema
        while not tokens.done:
            doc = tokens.doc
            word = tokens.take("word")
            if word == "include":
                name = tokens.take("string").strip('"')
                schema.includes.append(parse(schema.path.parent / name))
            elif word == "namespace":
                schema.namespace = tokens.take("word")
            elif word == "attribute":
                self._known_attributes.add(tokens.take("string").strip('"'))
            elif word == "file_identifier":
                schema.identifier = tokens.take("string").strip('"')
            elif word == "file_extension":
                tokens.take("string")
            elif word == "root_type":
                schema.root = tokens.take("word")
            elif word in ("enum", "union", "table"):
                getattr(self, f"_{word}")(doc)
                continue
            else:
                raise tokens.fail(f"{word!r} is not known here")
            tokens.expect(";")
        for table, raw in self._raw:
            self._resolve(table, raw)
        _refuse_recursion(schema)
        _refuse_unknown_versions(schema)
        return schema

    def _enum(self, doc: str) -> None:
        tokens = self._tokens
        name = tokens.take("word")
        tokens.expect(":")
        base = tokens.take("word")
        members: dict[str, int] = {}
        since: dict[str, int] = {}
        following = 0
        tokens.expect("{")
        while not tokens.accept("}"):
            member = tokens.take("word")
            if tokens.accept("="):
                following = int(tokens.take("number"))
            members[member] = following
            following += 1
            attributes = self._attributes()
            if "since" in attributes:
                since[member] = int(attributes["since"])
            if not tokens.accept(","):
                tokens.expect("}")
                break
        base = _ALIASES.get(base, base)
        if base not in SCALAR_BYTES:
            raise tokens.fail(f"{base!r} cannot be the type of enum {name}")
        self._schema.enums[name] = EnumDef(name, base, members, doc, since)

    def _union(self, doc: str) -> None:
        tokens = self._tokens
        name = tokens.take("word")
        members: dict[str, str] = {}
        tokens.expect("{")
        while not tokens.accept("}"):
            member = tokens.take("word")
            members[member] = tokens.take("word") if tokens.accept(":") else member
            if not tokens.accept(","):
                tokens.expect("}")
                break
        self._schema.unions[name] = UnionDef(name, members, doc)

    def _table(self, doc: str) -> None:
        tokens = self._tokens
        table = Table(tokens.take("word"), [], doc)
        table.since = int(self._attributes().get("since", "1"))
        table.doc = _with_version(doc, table.since)
        raw: list[_RawField] = []
        tokens.expect("{")
        while not tokens.accept("}"):
            raw.append(self._field())
        self._schema.tables[table.name] = table
        self._raw.append((table, raw))

    def _field(self) -> _RawField:
        tokens = self._tokens
        doc = tokens.doc
        name = tokens.take("word")
        tokens.expect(":")
        vector = tokens.accept("[")
        type_name = tokens.take("word")
        if vector:
            tokens.expect("]")
        default = tokens.value() if tokens.accept("=") else None
        attributes = self._attributes()
        tokens.expect(";")
        return _RawField(name, type_name, vector, default, attributes, doc)

    def _attributes(self) -> dict[str, str]:
        """The attributes in parentheses: (optional, since: 2)."""
        tokens = self._tokens
        attributes: dict[str, str] = {}
        if tokens.accept("("):
            while not tokens.accept(")"):
                attribute = tokens.take("word")
                if attribute not in self._known_attributes:
                    raise tokens.fail(f"attribute {attribute!r} is not declared")
                attributes[attribute] = tokens.value() if tokens.accept(":") else ""
                tokens.accept(",")
        return attributes

    def _resolve(self, table: Table, raw: list[_RawField]) -> None:
        """Gives the fields their kinds and ids, now that all names are known."""
        at = 0
        for r in raw:
            where = f"{self._schema.path}: {table.name}.{r.name}"
            kind, type_name = self._kind(r, where)
            since = int(r.attributes.get("since", "1"))
            if int(r.attributes.get("id", at)) < at:
                raise SchemaError(f"{where}: id {r.attributes['id']} is taken")
            at = int(r.attributes.get("id", at))
            field = Field(r.name, at, kind, type_name, doc=_with_version(r.doc, since), since=since)
            field.optional = "optional" in r.attributes
            field.align = int(r.attributes.get("force_align", "1"))
            if kind is Kind.SCALAR:
                field.default = self._default(r, type_name, where)
            elif r.default is not None:
                raise SchemaError(f"{where}: only scalars have a default")
            table.fields.append(field)
            at += 2 if kind is Kind.UNION else 1

    def _kind(self, r: _RawField, where: str) -> tuple[Kind, str]:
        schema = self._schema
        type_name = _ALIASES.get(r.type, r.type)
        if type_name in SCALAR_BYTES or (schema.enum(type_name) and not r.vector):
            if not r.vector:
                return Kind.SCALAR, type_name
            return (Kind.BYTES if r.type == "ubyte" else Kind.NUMBERS), type_name
        if type_name == "string" and not r.vector:
            return Kind.STRING, type_name
        if schema.table(type_name):
            return (Kind.TABLES if r.vector else Kind.TABLE), type_name
        if schema.union(type_name) and not r.vector:
            return Kind.UNION, type_name
        shown = f"[{r.type}]" if r.vector else r.type
        raise SchemaError(f"{where}: {shown} is not a type that is known here")

    def _default(self, r: _RawField, type_name: str, where: str) -> int | float | bool | str:
        enum = self._schema.enum(type_name)
        if enum is not None:
            member = r.default if r.default is not None else _member_of_zero(enum, where)
            if member not in enum.members:
                raise SchemaError(f"{where}: {member} is not a member of {type_name}")
            return member
        if type_name == "bool":
            return r.default == "true"
        if type_name.startswith("float"):
            return float(r.default or 0)
        return int(r.default or 0)


class _RawField:
    """A field before its type is looked up."""

    def __init__(
        self,
        name: str,
        type_name: str,
        vector: bool,
        default: str | None,
        attributes: dict[str, str],
        doc: str,
    ) -> None:
        self.name = name
        self.type = type_name
        self.vector = vector
        self.default = default
        self.attributes = attributes
        self.doc = doc


def _member_of_zero(enum: EnumDef, where: str) -> str:
    for member, number in enum.members.items():
        if number == 0:
            return member
    raise SchemaError(f"{where}: {enum.name} has no member 0, so a default must be given")


def _with_version(doc: str, since: int) -> str:
    """The documentation with a note of the version that added the definition."""
    return f"{doc} Since version {since}.".strip() if since > 1 else doc


def _head(text: str) -> str:
    """The first paragraph of the comment at the top of a file."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("//") or line.strip() == "//":
            break
        lines.append(line[2:].strip())
    return " ".join(lines)


def _refuse_recursion(schema: Schema) -> None:
    inside: list[str] = []
    done: set[str] = set()

    def visit(name: str) -> None:
        if name in inside:
            raise SchemaError(f"{schema.path}: table {name} contains itself")
        table = schema.table(name)
        if table is None:
            raise SchemaError(f"{schema.path}: {name} is in a union but is not a table")
        if name in done:
            return
        inside.append(name)
        for target in schema.targets(table):
            visit(target)
        inside.pop()
        done.add(name)

    for name in schema.tables:
        visit(name)


def _refuse_unknown_versions(schema: Schema) -> None:
    for owner, name, version in schema.since():
        if version > schema.newest:
            where = f"{owner}.{name}" if name else owner
            raise SchemaError(
                f"{schema.path}: {where} is of version {version}, and the enum Version ends at "
                f"{schema.newest}"
            )
