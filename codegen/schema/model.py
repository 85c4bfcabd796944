"""The definitions of an .fbs file, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

SCALAR_BYTES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float32": 4,
    "float64": 8,
}


class Kind(Enum):
    """The kind of a field."""

    SCALAR = auto()  # a number or an enum, in the table itself
    STRING = auto()
    BYTES = auto()  # [ubyte]: data without structure
    NUMBERS = auto()  # [int32], [double], …
    TABLE = auto()
    TABLES = auto()  # [Tensor]
    UNION = auto()  # takes two field ids: the type, then the value


@dataclass
class EnumDef:
    """An enum; `members` are in the order of the file.

    Attributes:
        since: for members after version 1, the version of the file that added them.
    """

    name: str
    base: str
    members: dict[str, int]
    doc: str = ""
    since: dict[str, int] = field(default_factory=dict)


@dataclass
class UnionDef:
    """A union: {member: its table}, in the order of the members' numbers from 1; 0 means none.

    A member has the name of its table unless several members share a table.
    """

    name: str
    members: dict[str, str]
    doc: str = ""


@dataclass
class Field:
    """A field of a table.

    Attributes:
        id: its index in the vtable; the value of a union is at `id + 1`.
        type: the name of the scalar, the element or the target: "int32", "ScalarType", "Tensor".
        default: the default of a scalar; for an enum, the name of a member.
        optional: None in Python when absent.
        align: the alignment of a byte vector, in bytes.
        since: the version of the file that added it.
    """

    name: str
    id: int
    kind: Kind
    type: str
    default: int | float | bool | str = 0
    optional: bool = False
    align: int = 1
    doc: str = ""
    since: int = 1

    @property
    def slots(self) -> int:
        """The number of its field ids."""
        return 2 if self.kind is Kind.UNION else 1


@dataclass
class Table:
    """A table with its fields in the order of their ids; `since` is the version that added it."""

    name: str
    fields: list[Field]
    doc: str = ""
    since: int = 1

    @property
    def slots(self) -> int:
        """The number of field ids of the table, with those that no field has."""
        last = self.fields[-1] if self.fields else None
        return 0 if last is None else last.id + last.slots


@dataclass
class Schema:
    """One .fbs file. Definitions are its own; `includes` holds the files that it includes."""

    path: Path
    doc: str = ""
    namespace: str = ""
    includes: list[Schema] = field(default_factory=list)
    enums: dict[str, EnumDef] = field(default_factory=dict)
    unions: dict[str, UnionDef] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    root: str = ""
    identifier: str = ""

    def enum(self, name: str) -> EnumDef | None:
        """The enum of this name, here or in an included file."""
        enum: EnumDef | None = self._find("enums", name)
        return enum

    def union(self, name: str) -> UnionDef | None:
        """The union of this name, here or in an included file."""
        union: UnionDef | None = self._find("unions", name)
        return union

    def table(self, name: str) -> Table | None:
        """The table of this name, here or in an included file."""
        table: Table | None = self._find("tables", name)
        return table

    @property
    def newest(self) -> int:
        """The greatest member of the enum `Version`; 1 if the schema has none."""
        versions = self.enums.get("Version")
        return max(versions.members.values()) if versions is not None else 1

    def since(self) -> Iterator[tuple[str, str, int]]:
        """The definitions that came after version 1: (table or enum, field or member, version); the
        field is "" for a whole table."""
        for enum in self.enums.values():
            yield from ((enum.name, member, version) for member, version in enum.since.items())
        for table in self.tables.values():
            listed = [("", table.since), *((f.name, f.since) for f in table.fields)]
            yield from ((table.name, name, version) for name, version in listed if version > 1)

    def _find(self, what: str, name: str) -> Any:
        for schema in (self, *self.includes):
            definition = getattr(schema, what).get(name)
            if definition is not None:
                return definition
        return None

    def targets(self, table: Table) -> Iterator[str]:
        """The names of the tables that `table` points to."""
        for f in table.fields:
            if f.kind in (Kind.TABLE, Kind.TABLES):
                yield f.type
            elif f.kind is Kind.UNION:
                union = self.union(f.type)
                assert union is not None
                yield from union.members.values()

    def in_order(self) -> list[Table]:
        """The tables that this file defines, each after those it points to."""
        done: dict[str, Table] = {}

        def visit(name: str) -> None:
            table = self.table(name)
            assert table is not None
            for target in self.targets(table):
                if target not in done:
                    visit(target)
            done[name] = table

        for name in self.tables:
            if name not in done:
                visit(name)
        return [t for t in done.values() if t.name in self.tables]

    def reachable(self) -> list[Table]:
        """The tables that a file of this schema can hold, the root first."""
        tables: dict[str, Table] = {}
        waiting = [self.root] if self.root else []
        while waiting:
            name = waiting.pop(0)
            if name not in tables:
                table = self.table(name)
                assert table is not None
                tables[name] = table
                waiting.extend(self.targets(table))
        return list(tables.values())
