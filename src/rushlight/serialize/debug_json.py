"""Reads debug maps of version 1: JSON with a row for every mention of a node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rushlight.schema.debug import DebugCall, DebugLine, DebugMap, DebugMethod, DebugNode


def read_json_map(data: bytes) -> DebugMap:
    """The map; parts that cannot be read count as absent."""
    try:
        document = json.loads(data)
        files = [str(file) for file in document["files"]]
        if document["version"] != 1:
            return DebugMap()
    except _DAMAGED:
        return DebugMap()
    debug = DebugMap()
    for part, read in _PARTS.items():
        methods = document.get(part)
        for name, rows in methods.items() if isinstance(methods, dict) else ():
            with suppress(*_DAMAGED):
                read(debug.methods.setdefault(name, DebugMethod()), rows, files)
    return debug


_DAMAGED = (
    *(KeyError, TypeError, ValueError, IndexError, AttributeError),
    *(OverflowError, RecursionError),
)


def _instructions(method: DebugMethod, rows: Any, files: Sequence[str]) -> None:
    method.instructions = [_node(files, *row) for row in rows]


def _values(method: DebugMethod, names: Any, files: Sequence[str]) -> None:
    method.values = {int(index): str(name) for index, name in names.items()}


def _delegates(method: DebugMethod, delegates: Any, files: Sequence[str]) -> None:
    method.delegates = [
        {str(key): tuple(_node(files, *row) for row in rows) for key, rows in places.items()}
        for places in delegates
    ]


def _coverage(method: DebugMethod, rows: Any, files: Sequence[str]) -> None:
    method.coverage = [
        DebugCall(
            _node(files, *row),
            str(backend),
            int(part),
            float(cost),
            tuple((str(key), str(why)) for key, why in dict(reasons).items()),
        )
        for backend, part, cost, reasons, *row in rows
    ]


_PARTS = {
    "methods": _instructions,
    "values": _values,
    "delegates": _delegates,
    "coverage": _coverage,
}


def _node(
    files: Sequence[str],
    name: Any,
    operator: Any,
    file: Any,
    number: Any,
    function: Any,
    text: Any,
    module: Any,
) -> DebugNode:
    path = files[file] if file >= 0 else ""
    line = DebugLine(path, int(number), str(function), str(text)) if path else DebugLine()
    return DebugNode(str(name), str(operator), line, str(module))
