"""The answers of fat programs that are remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from rushlight.runtime.forms import Index, Remembered


@pytest.mark.parametrize("form", ["../../outside", "/outside", "a/b", "\ud800", "", "x" * 5000])
def test_names_from_a_file_are_no_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path / "cache"))
    for id in ("id", "../..", "\ud800"):
        known = Remembered(Index(id, (form,), {}), ())
        assert form not in known
        known.add(form)
        assert form in known and form + "2" not in known
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) == 3 and {p.parent.name for p in files} == {"answers"}
