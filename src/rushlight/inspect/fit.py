"""Tables that fit their screen: less important columns are left out, text wraps between words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

# The places where a name that is too wide for its column may be broken.
_PIECES = re.compile(r"(?<=[._/:,])(?=\w)")


class FittingTable(Table):
    """A table that is never wider than its screen, and breaks a word only if it has to.

    Args:
        drop: the columns that may be left out, the least important first.
        options: as `rich.table.Table` takes them.
    """

    def __init__(self, *, drop: Sequence[int] = (), **options: Any) -> None:
        super().__init__(**options)
        self._drop = tuple(drop)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield _note(self.title, self.title_style)
        space = options.max_width
        cells = [[_text(c) for c in (column.header, *column.cells)] for column in self.columns]
        pairs = zip(cells, self.columns, strict=True)
        least = [_least(texts, column.justify == "right") for texts, column in pairs]
        shown = list(range(len(cells)))
        for index in self._drop:
            if self._frame(len(shown)) + sum(least[i] for i in shown) <= space:
                break
            shown.remove(index)
        widths = _widths(
            [least[i] for i in shown],
            [_most(cells[i]) for i in shown],
            space - self._frame(len(shown)),
        )
        table = Table(
            box=self.box, show_header=self.show_header, show_lines=self.show_lines,
            padding=self.padding,
        )  # fmt: skip
        for index, width in zip(shown, widths, strict=True):
            table.columns.append(_column(self.columns[index], len(table.columns)))
            table.columns[-1].width = width
            table.columns[-1].header = _fitted(cells[index][0], width)
        for row in range(self.row_count):
            fitted = zip(shown, widths, strict=True)
            table.add_row(*(_fitted(cells[i][row + 1], width) for i, width in fitted))
        yield table
        if self.caption:
            yield _note(self.caption, "dim")
        if len(shown) < len(cells):
            names = ", ".join(cells[i][0].plain for i in range(len(cells)) if i not in shown)
            yield Text(f"  left out for lack of room: {names}", style="dim")

    def _frame(self, columns: int) -> int:
        """The width of the box and the padding."""
        _, right, _, left = self.padding
        return columns * (left + right) + (columns + 1 if self.box is not None else 0)


def _column(original: Column, index: int) -> Column:
    column = original.copy()
    column._index = index
    column.ratio = None
    column.no_wrap = False
    column._cells = []
    return column


def _text(cell: Any) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text.from_markup(str(cell))


def _note(text: Any, style: Any) -> Text:
    return text if isinstance(text, Text) else Text(str(text), style=style or "")


def _least(cells: Sequence[Text], figures: bool) -> int:
    """The least width that breaks no word, and separates no figure from its unit; of text that may
    be cut off, only the first word counts."""
    heading, *others = cells
    words = heading.plain.split()
    for text in others:
        parts = text.plain.splitlines() if figures else text.plain.split()
        words += parts[:1] if text.no_wrap else parts
    return max(map(cell_len, words), default=0)


def _most(cells: Sequence[Text]) -> int:
    return max((cell_len(line) for text in cells for line in text.plain.splitlines()), default=0)


def _widths(least: list[int], most: list[int], space: int) -> list[int]:
    """A width for each column, from the least to the most that it needs, within `space`."""
    if sum(most) <= space:
        return most
    over = sum(least) - space
    while over > 0:  # names must be broken: make the widest column narrower
        widest = max(range(len(least)), key=least.__getitem__)
        if least[widest] <= 1:
            break
        least[widest] -= 1
        over -= 1
    left = max(space - sum(least), 0)
    wanted = [m - n for m, n in zip(most, least, strict=True)]
    widths = list(least)
    for rest, index in enumerate(sorted(range(len(least)), key=wanted.__getitem__)):
        more = min(
            wanted[index], left // (len(least) - rest)
        )  # columns that need little come first
        widths[index] += more
        left -= more
    return widths


def _fitted(text: Text, width: int) -> Text:
    """The text with breaks in words too wide for the column, or cut off if it must not wrap."""
    if text.no_wrap:
        return _cut(text, width)
    parts = []
    for line in text.split("\n"):
        words = line.split(" ")
        parts.append(Text(" ").join(_broken(word, width) for word in words))
    return Text("\n").join(parts)


def _broken(word: Text, width: int) -> Text:
    """A word in lines that fit, broken after dots and similar characters."""
    if cell_len(word.plain) <= width:
        return word
    at, start, last = [], 0, 0
    for place in [m.start() for m in _PIECES.finditer(word.plain)] + [len(word.plain)]:
        if cell_len(word.plain[start:place]) > width and last > start:
            at.append(last)
            start = last
        last = place
    return Text("\n").join(word.divide(at))


def _cut(text: Text, width: int) -> Text:
    """As many whole words and calls as fit, and a mark that there are more."""
    if cell_len(text.plain) <= width:
        return text
    ends = [m.end() for m in re.finditer(r"[\s(.,]", text.plain)]
    end = max((e for e in ends if cell_len(text.plain[:e]) < width), default=width)
    short = text[:end]
    if end < width:
        short.append("…")
    return short
