"""Builds the map from a program's instructions to Python lines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from rushlight.partition.coverage import Covered
from rushlight.schema.debug import DebugCall, DebugLine, DebugMap, DebugMethod, DebugNode
from rushlight.schema.source import Source


class DebugMapBuilder:
    """Builds the map; equal nodes and lines are one object.

    Attributes:
        map: the map so far.
    """

    def __init__(self) -> None:
        self.map = DebugMap()
        self._folder = Path.cwd()
        self._files: dict[str, str] = {}
        self._nodes: dict[tuple[str, str, Source], DebugNode] = {}
        self._lines: dict[DebugLine, DebugLine] = {}

    def add(self, method: str, node: str, operator: str, source: Source) -> None:
        """Append the node of the method's next instruction."""
        self._method(method).instructions.append(self._node(node, operator, source))

    def add_delegate(
        self, method: str, sources: Mapping[str, Sequence[tuple[str, str, Source]]]
    ) -> None:
        """Append the nodes of each place in the method's next delegate."""
        places = {key: tuple(self._node(*one) for one in rows) for key, rows in sources.items()}
        self._method(method).delegates.append(places)

    def add_coverage(self, method: str, covered: Sequence[Covered]) -> None:
        """Record the backend of each of a method's operator calls."""
        self._method(method).coverage = [
            DebugCall(
                self._node(c.name, c.operator, c.source),
                c.backend,
                c.part,
                round(c.cost, 3),
                tuple(c.reasons.items()),
            )
            for c in covered
        ]

    def name_value(self, method: str, index: int, name: str) -> None:
        """Record the name of a parameter or buffer."""
        self._method(method).values[index] = name

    def _method(self, name: str) -> DebugMethod:
        return self.map.methods.setdefault(name, DebugMethod())

    def _node(self, name: str, operator: str, source: Source) -> DebugNode:
        key = (name, operator, source)
        if key not in self._nodes:
            line = DebugLine(
                self._file(source.file) if source.file else "",
                source.line,
                source.function,
                source.text,
            )
            line = self._lines.setdefault(line, line)
            self._nodes[key] = DebugNode(name, operator, line, source.module, source.handle)
        return self._nodes[key]

    def _file(self, path: str) -> str:
        if path not in self._files:
            self._files[path] = _relative(Path(os.path.normpath(path)), self._folder)
        return self._files[path]


def _relative(path: PurePath, folder: PurePath) -> str:
    """A normalised path relative to `folder`, with "/" on every system. For a path outside of it,
    only the file and its folder, so that a program does not reveal paths of the machine."""
    if path.is_absolute():
        inside = path.is_relative_to(folder)
        path = path.relative_to(folder) if inside else path.relative_to(path.anchor)
    else:
        inside = ".." not in path.parts
    parts = path.parts if inside else path.parts[-2:]
    return "/".join(parts)
