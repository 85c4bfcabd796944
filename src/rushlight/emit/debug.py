"""The map from instructions to Python lines that travels in the file (`rushlight/debug`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.ir.source import Source
from rushlight.partition.coverage import Covered


@dataclass
class DebugMap:
    """Where instructions and values come from.

    Attributes:
        files: what the rows count.
        methods: one row per instruction: node, operator, file, line, function, source text, module
            path.
        values: names of parameters and buffers, by index of the value.
        delegates: for every delegate of a method, in the plan's order, the rows of the nodes that
            each of the backend's own instructions was made of, by the backend's id for it.
        coverage: of a method that was partitioned, every operator call: backend ("" if it stayed),
            which of the method's delegates (-1), estimated microseconds, {backend: reason why it
            stayed}, and the row.
    """

    files: list[str] = field(default_factory=list)
    methods: dict[str, list[list[Any]]] = field(default_factory=dict)
    values: dict[str, dict[int, str]] = field(default_factory=dict)
    delegates: dict[str, list[dict[str, list[list[Any]]]]] = field(default_factory=dict)
    coverage: dict[str, list[list[Any]]] = field(default_factory=dict)

    def add(self, method: str, node: str, operator: str, source: Source) -> None:
        """Append the row of the method's next instruction."""
        self.methods.setdefault(method, []).append(self._row(node, operator, source))

    def add_delegate(
        self, method: str, sources: Mapping[str, Sequence[tuple[str, str, Source]]]
    ) -> None:
        """Append the rows of the method's next delegate."""
        rows = {key: [self._row(*one) for one in listed] for key, listed in sources.items()}
        self.delegates.setdefault(method, []).append(rows)

    def add_coverage(self, method: str, covered: Sequence[Covered]) -> None:
        """Note what became of a method's operator calls."""
        self.coverage[method] = [
            [
                c.backend,
                c.part,
                round(c.cost, 3),
                dict(c.reasons),
                *self._row(c.name, c.operator, c.source),
            ]
            for c in covered
        ]

    def _row(self, node: str, operator: str, source: Source) -> list[Any]:
        file = self._file(source.file) if source.file else -1
        return [node, operator, file, source.line, source.function, source.text, source.module]

    def name_value(self, method: str, index: int, name: str) -> None:
        """Note the name of a parameter or buffer."""
        self.values.setdefault(method, {})[index] = name

    def _file(self, path: str) -> int:
        """The index of `path`, made relative: where the model was written is nobody's business."""
        relative = os.path.relpath(path) if os.path.isabs(path) else path
        if relative.startswith(".."):
            relative = "/".join(path.split("/")[-2:])
        if relative not in self.files:
            self.files.append(relative)
        return self.files.index(relative)

    def to_json(self) -> dict[str, Any]:
        """The map as it is stored."""
        return {
            "version": 1,
            "files": self.files,
            "methods": self.methods,
            "values": self.values,
            **({"delegates": self.delegates} if self.delegates else {}),
            **({"coverage": self.coverage} if self.coverage else {}),
        }
