"""A comparison in the terminal, and as a page without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from rich.console import RenderableType
from rich.text import Text

from rushlight.inspect.diff.model import ProgramDiff
from rushlight.inspect.diff.verdicts import Verdict
from rushlight.inspect.diff.view import Row, Section, differences_of, sections_of
from rushlight.inspect.html import plain_page
from rushlight.inspect.text import MAX_ROWS, more, table_of

_STYLES = {"bad": "red", "good": "green", "changed": "yellow", "told": "", "": ""}
_PAGE_STYLE = """
table { border-collapse: collapse; }
th, td { padding: 4px 14px 4px 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
th { font-size: 12px; color: var(--muted); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.changed td:first-child, .changed .number { color: var(--warn); }
.bad td { color: var(--bad); }
.good td { color: var(--good); }
"""


def terminal(diff: ProgramDiff, verdicts: Sequence[Verdict]) -> Iterator[RenderableType]:
    """The comparison for the terminal: what differs, and the verdicts."""
    yield Text.assemble((diff.before, "bold"), " → ", (diff.after, "bold"))
    differing, same = differences_of(sections_of(diff, verdicts))
    for section in differing:
        yield _table(section)
    if same:
        yield Text.assemble(("\n the same", "bold"), f": {'; '.join(same)}")


def _table(section: Section) -> RenderableType:
    if not section.rows:
        return Text.assemble(("\n " + section.title, "bold"), f": {section.note}")
    numbers = range(section.texts, len(section.columns))
    table = table_of(section.title, *section.columns, right=tuple(numbers))
    for row in section.rows[:MAX_ROWS]:
        table.add_row(*(Text(cell) for cell in row.cells), style=_STYLES[row.mark])
    if len(section.rows) > MAX_ROWS:
        return more(table, MAX_ROWS, len(section.rows))
    table.caption = Text(section.note, justify="left") if section.note else None
    return table


def page(diff: ProgramDiff, verdicts: Sequence[Verdict]) -> str:
    """The whole comparison, with what is equal, as one page, to be written as UTF-8."""
    sections = sections_of(diff, verdicts)
    body = "\n".join(_section(section) for section in sections)
    title = f"{diff.before} → {diff.after}"
    return plain_page(title, f"<h1>{escape(title)}</h1>\n{body}", _PAGE_STYLE)


def _section(section: Section) -> str:
    note = f'<p class="hint">{escape(section.note)}</p>' if section.note else ""
    table = ""
    if section.rows:
        head = "".join(f"<th>{escape(name)}</th>" for name in section.columns)
        rows = "\n".join(_row(row, section.texts) for row in section.rows)
        table = (
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{rows}\n</tbody></table></div>"
        )
    return f"<section><h2>{escape(section.title)}</h2>\n{table}{note}</section>"


def _row(row: Row, texts: int) -> str:
    cells = "".join(
        f"<td>{escape(cell)}</td>" if i < texts else f'<td class="number">{escape(cell)}</td>'
        for i, cell in enumerate(row.cells)
    )
    return f'<tr class="{row.mark}">{cells}</tr>' if row.mark else f"<tr>{cells}</tr>"
