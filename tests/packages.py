"""Packages that are installed for the duration of a test and found by their entry points."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

_numbers = itertools.count()


class Package:
    """An installed package in a folder of its own on sys.path."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self._folder = folder
        monkeypatch.syspath_prepend(folder)
        self._monkeypatch = monkeypatch

    def offer(
        self,
        id: str,
        code: str,
        value: str = "found",
        group: str = "rushlight.runtime_backends",
    ) -> str:
        """Install a package with this code and one entry point; returns the package's name."""
        name = f"test_package_{next(_numbers)}"
        (self._folder / f"{name}.py").write_text(code)
        info = self._folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{id} = {name}:{value}\n")
        self._monkeypatch.syspath_prepend(self._folder)  # also clears caches of the folder
        return name
