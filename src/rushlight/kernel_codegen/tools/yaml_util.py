# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""How the tools write YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from rushlight.files import AnyPath, write_text


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


def write_entries(path: AnyPath, entries: Sequence[Any]) -> None:
    """Write a YAML file of entries, a blank line between them.

    Args:
        path: the file.
        entries: what it lists, in this order.
    """
    text = yaml.dump(
        list(entries), Dumper=BlankLineDumper, default_flow_style=False, sort_keys=False, width=1000
    )
    write_text(path, text)
