"""Converts between dataclasses and flatbuffers, from a description of their fields.

The generated modules beside this one hold the dataclasses and their :class:`Format`; this one
depends on no schema. Files are not trusted: every offset is checked, and the objects that a file
can make the reader build are bounded by the file's size.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NoReturn

import flatbuffers

from rushlight.errors import Code, ExportError, LoadError

Buffer = bytes | bytearray | memoryview

# struct's letter of a scalar -> its bytes
_WIDTH = {letter: struct.calcsize(f"<{letter}") for letter in "?bBhHiIqQfd"}
_PREPEND = {
    "?": "PrependBool",
    "b": "PrependInt8",
    "B": "PrependUint8",
    "h": "PrependInt16",
    "H": "PrependUint16",
    "i": "PrependInt32",
    "I": "PrependUint32",
    "q": "PrependInt64",
    "Q": "PrependUint64",
    "f": "PrependFloat32",
    "d": "PrependFloat64",
}


# Vectors up to this length, such as shapes and dim orders, are shared. Longer ones are not, because
# the reader's budget is charged for a vector at every reference to it.
_SHARED_ITEMS = 16


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number or enum in the table itself; `letter` is struct's."""

    name: str
    slot: int
    letter: str
    default: int | float | bool = 0
    enum: type[IntEnum] | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    name: str
    slot: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Bytes:
    """A [ubyte] vector, aligned in the file to `align` bytes."""

    name: str
    slot: int
    align: int = 1
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """A vector of numbers."""

    name: str
    slot: int
    letter: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Child:
    """A table."""

    name: str
    slot: int
    table: type
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Children:
    """A vector of tables."""

    name: str
    slot: int
    table: type
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """A union. Member i has the type number i + 1; the type is in `slot`, the value in the next."""

    name: str
    slot: int
    members: tuple[type, ...]
    optional: bool = False


Field = Scalar | Text | Bytes | Numbers | Child | Children | Union


@dataclass(frozen=True, slots=True)
class Format:
    """A schema: its root class, the four characters of its files, and the fields of each class.

    `code` is the code of errors about bad files. `since` is the version since which a table (class,
    ""), a field (class, name) or a member of an enum (class, name) exists; those of version 1 are
    not in it.
    """

    root: type
    identifier: bytes
    tables: Mapping[type, tuple[Field, ...]]
    code: Code = Code.INVALID_PROGRAM
    since: Mapping[tuple[type, str], int] = field(default_factory=dict)
    slots: Mapping[type, int] = field(init=False)

    def __post_init__(self) -> None:
        slots = {table: _slot_count(fields) for table, fields in self.tables.items()}
        object.__setattr__(self, "slots", slots)


def _slot_count(fields: Sequence[Field]) -> int:
    return max((f.slot + (2 if isinstance(f, Union) else 1) for f in fields), default=0)


# ---- Writing ----


def pack(format: Format, root: Any, alignments: Mapping[type, int] | None = None) -> bytes:
    """The flatbuffer of `root`, with the format's identifier.

    Args:
        root: an instance of `format.root`.
        alignments: for classes whose byte vectors must be aligned more than the schema says.

    Raises:
        ExportError: a field's value does not fit its type; it names the class and the field.
    """
    writer = _Writer(format, alignments or {})
    builder = writer.builder
    builder.Finish(writer.table(root), file_identifier=format.identifier)
    return bytes(builder.Output())


class _Writer:
    """Writes tables; equal strings, and equal short vectors of numbers, are written once."""

    def __init__(self, format: Format, alignments: Mapping[type, int]) -> None:
        self.builder = flatbuffers.Builder(1 << 16)
        self._format = format
        self._alignments = alignments
        self._vectors: dict[tuple[str, bytes], int] = {}
        self._prepend = {k: getattr(self.builder, name) for k, name in _PREPEND.items()}
        # Fields in the order they are written: the widest first, so that tables need no padding
        # between fields. Everything that is not a scalar is an offset of 4 bytes.
        self._order = {
            table: sorted(fields, key=lambda f: -_WIDTH[f.letter] if isinstance(f, Scalar) else -4)
            for table, fields in format.tables.items()
        }

    def table(self, value: Any) -> int:
        """Writes `value` and all below it; returns its offset from the buffer's end."""
        cls = type(value)
        fields = self._order.get(cls)
        if fields is None:
            raise ExportError(
                f"{cls.__name__} is not a table of this schema", code=Code.INVALID_ARGUMENT
            )
        offsets = {}
        for f in fields:
            if not isinstance(f, Scalar):
                try:
                    offset = self._outside(f, cls, getattr(value, f.name))
                except (TypeError, ValueError, AttributeError, struct.error) as error:
                    _refuse(cls, f, getattr(value, f.name), error)
                if offset is not None:
                    offsets[f.name] = offset
        builder = self.builder
        builder.StartObject(self._format.slots[cls])
        for f in fields:
            if isinstance(f, Scalar):
                item = getattr(value, f.name)
                if item != f.default or (item == 0 and math.copysign(1, item) < 0):
                    try:
                        self._prepend[f.letter](item)
                    except (TypeError, struct.error) as error:
                        _refuse(cls, f, item, error)
                    builder.Slot(f.slot)
            elif f.name in offsets:
                builder.PrependUOffsetTRelative(offsets[f.name])
                if isinstance(f, Union):
                    builder.Slot(f.slot + 1)
                    builder.PrependUint8(f.members.index(type(getattr(value, f.name))) + 1)
                builder.Slot(f.slot)
        return int(builder.EndObject())

    def _outside(self, f: Field, cls: type, value: Any) -> int | None:
        """Writes the object that field `f` points to."""
        if value is None:
            if getattr(f, "optional", False):
                return None
            raise TypeError("must not be None")
        if isinstance(f, Union):
            if type(value) not in f.members:
                names = ", ".join(m.__name__ for m in f.members)
                raise TypeError(f"must be one of {names}")
            return self.table(value)
        if isinstance(f, Text):
            return int(self.builder.CreateSharedString(value))
        if isinstance(f, Bytes):
            return self._bytes(value, max(f.align, self._alignments.get(cls, 1)))
        if isinstance(f, Numbers):
            return self._numbers(f.letter, value)
        if isinstance(f, Child):
            return self.table(value)
        assert isinstance(f, Children)
        return self._offsets([self.table(item) for item in value])

    def _bytes(self, value: Buffer, align: int) -> int:
        data = memoryview(value).cast("B")
        return self._vector(data, 1, len(data), align)

    def _numbers(self, letter: str, values: Sequence[int | float | bool]) -> int:
        data = struct.pack(f"<{len(values)}{letter}", *values)
        known = self._vectors.get((letter, data))
        if known is not None:
            return known
        offset = self._vector(data, _WIDTH[letter], len(values), _WIDTH[letter])
        if len(values) <= _SHARED_ITEMS:
            self._vectors[letter, data] = offset
        return offset

    def _vector(self, data: Buffer, width: int, count: int, align: int) -> int:
        builder = self.builder
        builder.StartVector(width, count, align)
        head = builder.Head() - len(data)
        builder.head = head
        builder.Bytes[head : head + len(data)] = data
        return int(builder.EndVector())

    def _offsets(self, tables: list[int]) -> int:
        builder = self.builder
        builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            builder.PrependUOffsetTRelative(table)
        return int(builder.EndVector())


def _refuse(cls: type, f: Field, value: Any, error: Exception) -> NoReturn:
    raise ExportError(
        f"{cls.__name__}.{f.name} cannot be written: {error}; it is {value!r:.100}",
        code=Code.INVALID_ARGUMENT,
    ) from error


# ---- Reading ----


def unpack(format: Format, data: Buffer, *, views: bool = False) -> Any:
    """The instance of `format.root` that the flatbuffer `data` holds.

    Absent fields come back as their defaults, absent vectors and strings empty (None where the
    field is optional). The identifier is not checked.

    Args:
        format: of the file.
        data: the file.
        views: byte vectors come back as views of `data`, not as copies.

    Raises:
        LoadError: `data` is not a flatbuffer of this format; it says where.
    """
    view = memoryview(data).cast("B")
    reader = Reader(format, view, views)
    return reader.table(format.root, reader.follow(0, format.root.__name__))


class Reader:
    """Reads tables; positions are offsets into the buffer.

    Vectors may share bytes. In a valid file these are equal vectors that are written once, but a
    hostile file may overlap vectors so that few bytes become a large object. So the reader has a
    budget for tables (a valid file has at most one for each 4 bytes) and for items of lists.
    Strings and byte vectors are immutable, so those at the same place are read once.
    """

    def __init__(self, format: Format, data: memoryview, views: bool) -> None:
        self._format = format
        self._views = views
        self._data = data
        self._size = len(data)
        self._tables_left = len(data) // 4
        self._items_left = len(data) + 4096
        self._shared: dict[tuple[type, int], Any] = {}

    def fail(self, where: str, what: str) -> NoReturn:
        """Raise the error that `what` is wrong at a table or field."""
        raise LoadError(
            f"{what}; the file is damaged or not of this kind, export it again",
            code=self._format.code,
            where=where,
        )

    def follow(self, at: int, where: str) -> int:
        """The position that the offset at `at` points to; at least 4 bytes are there."""
        if at + 4 > self._size:
            self.fail(where, f"the file ends at byte {self._size}, in the middle of an offset")
        target = at + int(struct.unpack_from("<I", self._data, at)[0])
        if target + 4 > self._size:
            self.fail(where, f"an offset leads to byte {target} of {self._size}")
        return target

    def table(self, cls: type, start: int) -> Any:
        """The table of class `cls` at `start`, where there are at least 4 bytes."""
        name = cls.__name__
        self._tables_left -= 1
        if self._tables_left < 0:
            self.fail(name, "more tables are referred to than the file can hold")
        data, size = self._data, self._size
        vtable = start - int(struct.unpack_from("<i", data, start)[0])
        if not 0 <= vtable <= size - 4:
            self.fail(name, f"its vtable would be at byte {vtable} of {size}")
        vtable_bytes, table_bytes = struct.unpack_from("<HH", data, vtable)
        if vtable_bytes < 4 or vtable_bytes % 2 or vtable + vtable_bytes > size:
            self.fail(name, f"its vtable has {vtable_bytes} bytes")
        if table_bytes < 4 or start + table_bytes > size:
            self.fail(name, f"it would have {table_bytes} bytes at byte {start} of {size}")
        offsets = struct.unpack_from(f"<{vtable_bytes // 2 - 2}H", data, vtable + 4)
        values = {}
        for f in self._format.tables[cls]:
            offset = offsets[f.slot] if f.slot < len(offsets) else 0
            if isinstance(f, Union):
                values[f.name] = self._union(f, name, start, table_bytes, offsets)
                continue
            if offset == 0:
                if isinstance(f, Scalar) or f.optional:
                    continue  # the dataclass has the default
                values[f.name] = _empty(f)
                continue
            width = _WIDTH[f.letter] if isinstance(f, Scalar) else 4
            if offset < 4 or offset + width > table_bytes:
                self.fail(f"{name}.{f.name}", f"it would be at byte {offset} of {table_bytes}")
            values[f.name] = self.field(f, name, start + offset)
        return cls(**values)

    def field(self, f: Field, table: str, at: int) -> Any:
        """The field `f`, which lies at `at`, of the table of this name."""
        if isinstance(f, Scalar):
            value = struct.unpack_from(f"<{f.letter}", self._data, at)[0]
            return value if f.enum is None else self._member(f.enum, value, f"{table}.{f.name}")
        where = f"{table}.{f.name}"
        target = self.follow(at, where)
        if isinstance(f, Child):
            return self.table(f.table, target)
        if isinstance(f, Text | Bytes):
            key = (type(f), target)
            if key not in self._shared:
                self._shared[key] = self._blob(target, isinstance(f, Text), where)
            return self._shared[key]
        width = _WIDTH[f.letter] if isinstance(f, Numbers) else 4
        count = self._count(target, width, where)
        if isinstance(f, Numbers):
            return list(struct.unpack_from(f"<{count}{f.letter}", self._data, target + 4))
        assert isinstance(f, Children)
        items = range(target + 4, target + 4 + 4 * count, 4)
        return [self.table(f.table, self.follow(item, where)) for item in items]

    def _union(
        self, f: Union, table: str, start: int, table_bytes: int, offsets: Sequence[int]
    ) -> Any:
        where = f"{table}.{f.name}"
        kind_at, value_at = (
            offsets[slot] if slot < len(offsets) else 0 for slot in (f.slot, f.slot + 1)
        )
        if kind_at == 0 or value_at == 0:
            if f.optional:
                return None
            self.fail(where, "it is missing")
        if kind_at < 4 or kind_at >= table_bytes or value_at < 4 or value_at + 4 > table_bytes:
            self.fail(where, "it would be outside of its table")
        kind = self._data[start + kind_at]
        if kind == 0 and f.optional:
            return None
        if not 1 <= kind <= len(f.members):
            self.fail(where, f"it is of type {kind}, which is not known here")
        return self.table(f.members[kind - 1], self.follow(start + value_at, where))

    def _member(self, enum: type[IntEnum], number: int, where: str) -> IntEnum:
        try:
            return enum(number)
        except ValueError:
            self.fail(where, f"{number} is not a {enum.__name__}")

    def _count(self, at: int, width: int, where: str) -> int:
        """The number of items of the vector at `at`, charged to the budget."""
        count = int(struct.unpack_from("<I", self._data, at)[0])
        if count * width > self._size - at - 4:
            self.fail(where, f"its {count} items would reach beyond the end of the file")
        self._items_left -= count
        if self._items_left < 0:
            self.fail(where, "more items are referred to than the file can hold")
        return count

    def _blob(self, at: int, text: bool, where: str) -> str | Buffer:
        count = self._count(at, 1, where)
        view = self._data[at + 4 : at + 4 + count]
        if self._views and not text:
            return view
        data = bytes(view)
        if not text:
            return data
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.fail(where, f"it is not UTF-8 ({error.reason})")


def _empty(f: Field) -> Any:
    if isinstance(f, Text):
        return ""
    if isinstance(f, Bytes):
        return b""
    if isinstance(f, Child):
        return f.table()
    return []
