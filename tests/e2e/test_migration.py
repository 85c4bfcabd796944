"""Every row of docs/migration.md that is Python runs, and what its last column says holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migration.md"
TEXT = PAGE.read_text("utf-8")


class Row(NamedTuple):
    there: str
    here: str
    holds: str


def _code(cell: str) -> str:
    """The code spans of a cell, one per line; words beside them are for the reader."""
    return "\n".join(re.findall(r"`([^`]+)`", cell)).replace("\\|", "|")


def _rows() -> list[Row]:
    rows = []
    for line in TEXT.splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        if len(cells) == 3 and "`" in line:
            rows.append(Row(*map(_code, cells)))
    return rows


def test_the_page_has_rows() -> None:
    assert len(_rows()) >= 25


@pytest.fixture(scope="module")
def preamble(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder in which the page's first code block ran, and its names."""
    match = re.search(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
    assert match is not None
    folder = tmp_path_factory.mktemp("migration")
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(match[1], names)
    return folder, names


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row.there.replace("\n", "; ")[:80])
def test_row(
    row: Row, preamble: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, names = preamble
    monkeypatch.chdir(folder)
    names = dict(names)
    exec(row.here, names)
    assert eval(row.holds, names), row.holds
