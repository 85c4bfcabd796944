"""Tables and texts shared by reports in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from rushlight.inspect.fit import FittingTable
from rushlight.schema.source import Source

MAX_ROWS = 20  # of a table that grows with the model; the HTML page shows all rows
_UNITS = ("B", "KiB", "MiB", "GiB")


def size_text(count: int) -> str:
    """Bytes with a unit: "1.5 KiB"."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {_UNITS[unit]}"


def time_text(nanoseconds: float) -> str:
    """A time with its unit: "1.23 ms"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def table_of(
    title: str, *columns: str, right: Sequence[int] = (), drop: Sequence[int] = ()
) -> FittingTable:
    """A table with headings.

    Args:
        title: the title above the table.
        columns: the headings.
        right: the columns that are aligned to the right.
        drop: the columns that may be left out if there is no room, the least important first.
    """
    table = FittingTable(box=box.SIMPLE_HEAD, title=title, title_style="bold", drop=drop)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i in right else "left", overflow="fold")
    return table


def pairs_of(columns: int, right: Sequence[int] = ()) -> FittingTable:
    """A table of labels and figures, without headings and lines."""
    table = FittingTable(box=None, show_header=False, padding=(0, 2, 0, 1))
    for i in range(columns):
        style = "dim" if i == columns - 1 else ""
        table.add_column(justify="right" if i in right else "left", style=style)
    return table


def more(table: Table, shown: int, total: int) -> Table:
    """The table, with a note if it shows fewer rows than there are."""
    if total > shown:
        table.caption = f"{total - shown} more; --html shows all"
    return table


def short_source(source: Source | None) -> str:
    """A Python line without the folders of its file."""
    if source is None:
        return ""
    place = source.brief or source.module
    return f"{place}: {source.text}" if source.text else place
