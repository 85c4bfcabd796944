"""Modules with the classes and functions that flatc's generator for Python writes for a table.

For a table `Node` the module has the class `Node`, which reads fields where they lie in a buffer;
the functions `NodeStart`, `NodeAddField`, `NodeStartFieldVector` and `NodeEnd`, also without the
table's name, for a `flatbuffers.Builder`; and the class `NodeT`, an object that is made from a
reader and packs itself. The bytes are not checked: `rushlight.schema.codec` reads files that are
not trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import flatbuffers
import numpy as np
from flatbuffers import encode, packer, util
from flatbuffers.table import Table

from rushlight.devtools import table_fields
from rushlight.schema import codec

Names = dict[str, Any]
"""What a class or a module has."""


class TableModules:
    """The modules of all tables of a format.

    Args:
        format: the tables.
        owner: the module whose attributes the modules made here become, for pickles of objects.

    Attributes:
        readers: by table, the class that reads it.
        objects: by table, the class of its objects.
    """

    def __init__(self, format: codec.Format, owner: str) -> None:
        self._format = format
        self._owner = owner
        self.readers: dict[type, type] = {}
        self.objects: dict[type, type] = {}
        self._fields = {
            table: [table_fields.access(f, self.readers, self.objects) for f in fields]
            for table, fields in format.tables.items()
        }
        for table, fields in self._fields.items():
            self.readers[table] = self._class(table, "", self._reader(table, fields))
            self.objects[table] = self._class(table, "T", self._object(table, fields))

    def _class(self, table: type, suffix: str, names: Names) -> type:
        name = table.__name__
        made = type(f"{name}{suffix}", (), {"__doc__": table.__doc__, **names})
        made.__module__, made.__qualname__ = self._owner, f"{name}.{name}{suffix}"
        return made

    def table(self, table: type) -> ModuleType:
        """The module of a table."""
        name = table.__name__
        functions: Names = {
            "Start": lambda builder: builder.StartObject(self._format.slots[table]),
            "End": lambda builder: builder.EndObject(),
        }
        for f in self._fields[table]:
            functions |= f.functions()
        made = ModuleType(f"{self._owner}.{name}", f"The table {name}.")
        vars(made).update(functions, np=np)
        vars(made).update({f"{name}{key}": function for key, function in functions.items()})
        vars(made).update({name: self.readers[table], f"{name}T": self.objects[table]})
        return made

    def union(self, name: str, members: tuple[type, ...]) -> ModuleType:
        """The module of a union: its members' numbers, and the function that reads one.

        Args:
            name: the union's.
            members: its tables in their order.
        """
        numbers = {"NONE": 0, **{table.__name__: i + 1 for i, table in enumerate(members)}}
        made = ModuleType(f"{self._owner}.{name}", f"The union {name}.")
        read = table_fields.member_reader(members, self.objects)
        vars(made).update({name: type(name, (), numbers), f"{name}Creator": read})
        return made

    def _reader(self, table: type, fields: list[table_fields.Access]) -> Names:
        identifier = self._format.identifier

        def has_identifier(cls: type, buf: Any, offset: int, size_prefixed: bool = False) -> bool:
            return bool(util.BufferHasIdentifier(buf, offset, identifier, size_prefixed))

        name = table.__name__
        names: Names = {
            "__slots__": ("_tab",),
            "Init": _init,
            "GetRootAs": classmethod(_root),
            f"GetRootAs{name}": classmethod(_root),
            f"{name}BufferHasIdentifier": classmethod(has_identifier),
        }
        for f in fields:
            names |= f.methods()
        return names

    def _object(self, table: type, fields: list[table_fields.Access]) -> Names:
        unset: Names = {}
        for f in fields:
            unset |= f.unset()

        def init(self: Any) -> None:
            vars(self).update(unset)

        def unpack(self: Any, reader: Any) -> None:
            for f in fields if reader is not None else ():
                vars(self).update(f.unpack(reader))

        def pack(self: Any, builder: flatbuffers.Builder) -> int:
            adders: list[Callable[[], None]] = [f.pack(self, builder) for f in fields]
            builder.StartObject(slots)
            for add in adders:
                add()
            return int(builder.EndObject())

        def from_place(cls: Any, buf: Any, pos: int) -> Any:
            reader = self.readers[table]()
            reader.Init(buf, pos)
            return cls.InitFromObj(reader)

        slots = self._format.slots[table]
        return {
            "__init__": init,
            "_UnPack": unpack,
            "Pack": pack,
            "InitFromBuf": classmethod(from_place),
            "InitFromPackedBuf": classmethod(_from_packed),
            "InitFromObj": classmethod(_from_reader),
        }


def _init(self: Any, buf: Any, pos: int) -> None:
    self._tab = Table(buf, pos)


def _root(cls: type, buf: Any, offset: int = 0) -> Any:
    reader: Any = cls()
    reader.Init(buf, offset + encode.Get(packer.uoffset, buf, offset))
    return reader


def _from_packed(cls: Any, buf: Any, pos: int = 0) -> Any:
    return cls.InitFromBuf(buf, pos + encode.Get(packer.uoffset, buf, pos))


def _from_reader(cls: Any, reader: Any) -> Any:
    made = cls()
    made._UnPack(reader)
    return made
