"""The report on a program file, which prints itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.inspect.model import ProgramContents

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(slots=True)
class ProgramReport(ProgramContents):
    """The report on a program file; see `ProgramContents` for its fields.

    Rich prints it as tables, `str()` gives the same as text.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rushlight.inspect.terminal import overview

        yield from overview(self)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=100, no_color=True)
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip()
