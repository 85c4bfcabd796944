"""How the classes of `table_modules` read and write one field, by the kind of field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import flatbuffers
import numpy as np
from flatbuffers import number_types
from flatbuffers.table import Table

from rushlight.schema import codec

_WORDS = {
    "?": "Bool",
    "b": "Int8",
    "B": "Uint8",
    "h": "Int16",
    "H": "Uint16",
    "i": "Int32",
    "I": "Uint32",
    "q": "Int64",
    "Q": "Uint64",
    "f": "Float32",
    "d": "Float64",
}
_OFFSET_BYTES = 4

Classes = Mapping[type, Any]
Names = dict[str, Any]


class Access(Protocol):
    """One field, or the two of a union."""

    def methods(self) -> Names:
        """The reader's methods."""

    def functions(self) -> Names:
        """The functions for a builder, without the table's name."""

    def unset(self) -> Names:
        """The attributes of a new object."""

    def unpack(self, reader: Any) -> Names:
        """The attributes of an object as a reader has them; those that are absent are left out."""

    def pack(self, made: Any, builder: flatbuffers.Builder) -> Callable[[], None]:
        """Write what lies outside of the object `made`; returns what adds the field to its
        table."""


def access(f: codec.Field, readers: Classes, objects: Classes) -> Access:
    """How a field is read and written.

    Args:
        f: the field.
        readers, objects: by table, its classes; they are looked up when they are needed.
    """
    if isinstance(f, codec.Scalar):
        return _Scalar(f.name, f.slot, f.letter, f.default)
    if isinstance(f, codec.Text):
        return _Text(f.name, f.slot)
    if isinstance(f, codec.Bytes):
        return _Numbers(f.name, f.slot, "B", f.align)
    if isinstance(f, codec.Numbers):
        return _Numbers(f.name, f.slot, f.letter, _flags(f.letter).bytewidth)
    if isinstance(f, codec.Child):
        return _Child(f.name, f.slot, f.table, readers, objects)
    if isinstance(f, codec.Children):
        return _Children(f.name, f.slot, f.table, readers, objects)
    return _Union(f.name, f.slot, f.members, objects)


def member_reader(members: tuple[type, ...], objects: Classes) -> Callable[[int, Any], Any]:
    """The function that makes an object of a union's number and table; None of what is neither.

    Args:
        members: the union's tables in their order.
        objects: by table, the class of its objects.
    """

    def read(union_type: int, table: Any) -> Any:
        if not isinstance(table, Table) or not 1 <= union_type <= len(members):
            return None
        return objects[members[union_type - 1]].InitFromBuf(table.Bytes, table.Pos)

    return read


def _flags(letter: str) -> Any:
    return getattr(number_types, f"{_WORDS[letter]}Flags")


class _Field:
    def __init__(self, name: str, slot: int) -> None:
        words = name.split("_")
        self.camel = "".join(word[:1].upper() + word[1:] for word in words)
        self.attribute = self.camel[:1].lower() + self.camel[1:]
        self.slot = slot

    def at(self, reader: Any) -> int:
        """Where the field lies in its table; 0 if it is absent."""
        return int(reader._tab.Offset(4 + 2 * self.slot))


class _Scalar(_Field):
    def __init__(self, name: str, slot: int, letter: str, default: Any) -> None:
        super().__init__(name, slot)
        self._flags = _flags(letter)
        self._default = self._flags.py_type(default)
        self._slot_writer = f"Prepend{_WORDS[letter]}Slot"

    def _get(self, reader: Any) -> Any:
        at = self.at(reader)
        return reader._tab.Get(self._flags, at + reader._tab.Pos) if at else self._default

    def _add(self, builder: flatbuffers.Builder, value: Any) -> None:
        getattr(builder, self._slot_writer)(self.slot, value, self._default)

    def methods(self) -> Names:
        return {self.camel: lambda reader: self._get(reader)}

    def functions(self) -> Names:
        return {f"Add{self.camel}": self._add}

    def unset(self) -> Names:
        return {self.attribute: self._default}

    def unpack(self, reader: Any) -> Names:
        return {self.attribute: self._get(reader)}

    def pack(self, made: Any, builder: flatbuffers.Builder) -> Callable[[], None]:
        return lambda: self._add(builder, getattr(made, self.attribute))


class _Outside(_Field):
    """What a table has an offset of."""

    def _add(self, builder: flatbuffers.Builder, offset: int) -> None:
        builder.PrependUOffsetTRelativeSlot(self.slot, offset, 0)

    def functions(self) -> Names:
        return {f"Add{self.camel}": self._add}

    def unset(self) -> Names:
        return {self.attribute: None}

    def pack(self, made: Any, builder: flatbuffers.Builder) -> Callable[[], None]:
        value = getattr(made, self.attribute)
        offset = 0 if value is None else self._write(builder, value)
        return lambda: self._add(builder, offset)

    def _write(self, builder: flatbuffers.Builder, value: Any) -> int:
        return int(value.Pack(builder))


class _Text(_Outside):
    def _get(self, reader: Any) -> bytes | None:
        at = self.at(reader)
        return reader._tab.String(at + reader._tab.Pos) if at else None

    def methods(self) -> Names:
        return {self.camel: lambda reader: self._get(reader)}

    def unpack(self, reader: Any) -> Names:
        return {self.attribute: self._get(reader)}

    def _write(self, builder: flatbuffers.Builder, value: Any) -> int:
        return int(builder.CreateString(value))


class _Vector(_Outside):
    """A vector of items of `width` bytes, the first of which lies at a multiple of `align`."""

    def __init__(self, name: str, slot: int, width: int, align: int) -> None:
        super().__init__(name, slot)
        self._width = width
        self._align = align

    def _place(self, reader: Any, j: int) -> int:
        return int(reader._tab.Vector(self.at(reader))) + j * self._width

    def _length(self, reader: Any) -> int:
        at = self.at(reader)
        return int(reader._tab.VectorLen(at)) if at else 0

    def _start(self, builder: flatbuffers.Builder, count: int) -> Any:
        return builder.StartVector(self._width, count, self._align)

    def methods(self) -> Names:
        return {
            self.camel: lambda reader, j: self._item(reader, j),
            f"{self.camel}Length": lambda reader: self._length(reader),
            f"{self.camel}IsNone": lambda reader: not self.at(reader),
        }

    def functions(self) -> Names:
        return {**super().functions(), f"Start{self.camel}Vector": self._start}

    def _item(self, reader: Any, j: int) -> Any:
        raise NotImplementedError


class _Numbers(_Vector):
    """Numbers; of byte vectors, too, as `Start…Vector` aligns these as the schema says."""

    def __init__(self, name: str, slot: int, letter: str, align: int) -> None:
        self._flags = _flags(letter)
        self._dtype = np.dtype(f"<{letter}")
        super().__init__(name, slot, self._flags.bytewidth, align)

    def _item(self, reader: Any, j: int) -> Any:
        return reader._tab.Get(self._flags, self._place(reader, j)) if self.at(reader) else 0

    def _array(self, reader: Any) -> Any:
        at = self.at(reader)
        return reader._tab.GetVectorAsNumpy(self._flags, at) if at else 0

    def methods(self) -> Names:
        return {**super().methods(), f"{self.camel}AsNumpy": lambda reader: self._array(reader)}

    def unpack(self, reader: Any) -> Names:
        return {self.attribute: self._array(reader)} if self.at(reader) else {}

    def _write(self, builder: flatbuffers.Builder, value: Any) -> int:
        held = np.frombuffer(value, "u1") if isinstance(value, codec.Buffer) else value
        data = np.asarray(held).astype(self._dtype).tobytes()
        self._start(builder, len(data) // self._width)
        builder.head = builder.Head() - len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        return int(builder.EndVector())


class _Child(_Outside):
    def __init__(
        self, name: str, slot: int, table: type, readers: Classes, objects: Classes
    ) -> None:
        super().__init__(name, slot)
        self._table, self._readers, self._objects = table, readers, objects

    def _get(self, reader: Any) -> Any:
        at = self.at(reader)
        return _table_at(reader, at + reader._tab.Pos, self._readers[self._table]) if at else None

    def methods(self) -> Names:
        return {self.camel: lambda reader: self._get(reader)}

    def unpack(self, reader: Any) -> Names:
        child = self._get(reader)
        made = None if child is None else self._objects[self._table].InitFromObj(child)
        return {self.attribute: made}


class _Children(_Vector):
    def __init__(
        self, name: str, slot: int, table: type, readers: Classes, objects: Classes
    ) -> None:
        super().__init__(name, slot, _OFFSET_BYTES, _OFFSET_BYTES)
        self._table, self._readers, self._objects = table, readers, objects

    def _item(self, reader: Any, j: int) -> Any:
        if not self.at(reader):
            return None
        return _table_at(reader, self._place(reader, j), self._readers[self._table])

    def unpack(self, reader: Any) -> Names:
        if not self.at(reader):
            return {}
        items = (self._item(reader, j) for j in range(self._length(reader)))
        return {self.attribute: [self._objects[self._table].InitFromObj(item) for item in items]}

    def _write(self, builder: flatbuffers.Builder, value: Any) -> int:
        offsets = [item.Pack(builder) for item in value]
        self._start(builder, len(offsets))
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())


def _table_at(reader: Any, offset_at: int, cls: Callable[[], Any]) -> Any:
    """The reader of the table to which the offset at a place leads."""
    child = cls()
    child.Init(reader._tab.Bytes, reader._tab.Indirect(offset_at))
    return child


class _Union(_Outside):
    """The number of the member in one slot, and its table in the next."""

    def __init__(self, name: str, slot: int, members: tuple[type, ...], objects: Classes) -> None:
        super().__init__(name, slot + 1)
        self._kind = _Scalar(f"{name}_type", slot, "B", 0)
        self._read = member_reader(members, objects)

    def _get(self, reader: Any) -> Table | None:
        at = self.at(reader)
        if not at:
            return None
        table = Table(bytearray(), 0)
        reader._tab.Union(table, at)
        return table

    def methods(self) -> Names:
        return {**self._kind.methods(), self.camel: lambda reader: self._get(reader)}

    def functions(self) -> Names:
        return {**self._kind.functions(), **super().functions()}

    def unset(self) -> Names:
        return {**self._kind.unset(), **super().unset()}

    def unpack(self, reader: Any) -> Names:
        kind = self._kind.unpack(reader)
        number = kind[self._kind.attribute]
        return {**kind, self.attribute: self._read(number, self._get(reader))}

    def pack(self, made: Any, builder: flatbuffers.Builder) -> Callable[[], None]:
        add_table = super().pack(made, builder)
        add_kind = self._kind.pack(made, builder)

        def add() -> None:
            add_kind()
            add_table()

        return add
