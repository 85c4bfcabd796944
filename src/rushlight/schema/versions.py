"""Finds the version that a file needs: the newest that any of its tables and fields needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.schema.codec import Child, Children, Field, Format, Scalar, Union


def least_version(format: Format, root: Any) -> int:
    """The least version whose readers know the tables, fields and members of enums in `root`.

    A field counts if it is written, that is, if its value is neither the default nor None.
    """
    return max(_versions(format, root))


def _versions(format: Format, table: Any) -> Iterator[int]:
    kind = type(table)
    yield format.since.get((kind, ""), 1)
    for f in format.tables[kind]:
        value = getattr(table, f.name)
        if _is_absent(f, value):
            continue
        yield format.since.get((kind, f.name), 1)
        if isinstance(f, Scalar) and f.enum is not None:
            yield format.since.get((f.enum, f.enum(value).name), 1)
        elif isinstance(f, Child | Union):
            yield from _versions(format, value)
        elif isinstance(f, Children):
            for one in value:
                yield from _versions(format, one)


def _is_absent(f: Field, value: Any) -> bool:
    if isinstance(f, Scalar):
        return bool(value == f.default)
    return value is None or (not isinstance(f, Child | Union | Children) and len(value) == 0)
