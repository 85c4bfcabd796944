# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""How the tools write YAML."""

from __future__ import annotations

from typing import Any

import yaml


class BlankLineDumper(yaml.SafeDumper):
    """Leaves a line free between the entries of a list."""

    def write_line_break(self, data: Any = None) -> None:
        """Ends a line, and leaves one free after an entry.

        Args:
            data: the line break to write, by default that of the file.
        """
        super().write_line_break(data)
        if len(self.indents) == 1:
            super().write_line_break()
