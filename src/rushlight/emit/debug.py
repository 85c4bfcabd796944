"""The map from instructions to Python lines that travels in the file (`rushlight/debug`)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from rushlight.ir.source import Source


@dataclass
class DebugMap:
    """One row per instruction: node, operator, file, line, function, source text, module path."""

    files: list[str] = field(default_factory=list)
    methods: dict[str, list[list[Any]]] = field(default_factory=dict)

    def add(self, method: str, node: str, operator: str, source: Source) -> None:
        """Append the row of the method's next instruction."""
        file = self._file(source.file) if source.file else -1
        row = [node, operator, file, source.line, source.function, source.text, source.module]
        self.methods.setdefault(method, []).append(row)

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
        return {"version": 1, "files": self.files, "methods": self.methods}
