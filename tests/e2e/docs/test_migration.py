"""Every row of docs/migration.md runs, and what its last column says holds."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "migration.md"
TEXT = PAGE.read_text("utf-8")
PYTHON, CPP = TEXT.split("## C++\n")
BUILD = PAGE.parents[1] / "build" / "dev"
LIBRARIES = ("rushlight_module", "rushlight_kernels_portable", "rushlight_core")


class Row(NamedTuple):
    there: str
    here: str
    holds: str


def _code(cell: str) -> str:
    """The code spans of a cell, one per line; words beside them are for the reader."""
    return "\n".join(re.findall(r"`([^`]+)`", cell)).replace("\\|", "|")


def _rows(text: str = PYTHON) -> list[Row]:
    rows = []
    for line in text.splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        if len(cells) == 3 and "`" in line:
            rows.append(Row(*map(_code, cells)))
    return rows


def test_the_page_has_rows() -> None:
    assert len(_rows()) >= 25


@pytest.fixture(scope="module")
def preamble(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder in which the page's code blocks ran, and their names."""
    blocks = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
    assert len(blocks) == 2
    folder = tmp_path_factory.mktemp("migration")
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec("\n".join(blocks), names)
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


def test_every_cpp_row(preamble: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """The rows in one program, a block each; its exit status is the first row that fails."""
    match = re.search(r"^```cpp\n(.*?)^```", CPP, re.M | re.S)
    rows = [row for row in _rows(CPP) if row.here]
    assert match is not None and len(rows) >= 5
    blocks = [
        f"  {{\n    {row.here}\n    if (!({row.holds})) return {number};\n  }}\n"
        for number, row in enumerate(rows, start=1)
    ]
    numbers = "  float numbers[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};\n"
    source = tmp_path / "rows.cpp"
    source.write_text(f"{match[1]}\nint main() {{\n{numbers}{''.join(blocks)}  return 0;\n}}\n")
    libraries = [next(BUILD.rglob(f"lib{name}.a")) for name in LIBRARIES]
    compiler = ["g++", "-std=c++17", "-I", BUILD / "include", source, "-o", tmp_path / "rows"]
    subprocess.run([*compiler, *libraries], check=True)
    status = subprocess.run([tmp_path / "rows"], cwd=preamble[0], check=False).returncode
    assert status == 0, rows[status - 1] if status > 0 else status
