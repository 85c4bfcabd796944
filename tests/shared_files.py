"""Files that are slow to make, and that several tests read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock


class SharedFiles:
    """Folders that are filled once for all processes of a test run.

    Args:
        base: a folder that these processes have in common.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def folder(self, name: str, fill: Callable[[Path], object]) -> Path:
        """The folder of a name, which the first caller fills with ``fill(folder)``."""
        folder, unfinished = self._base / name, self._base / f"{name}.unfinished"
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                fill(unfinished)
                unfinished.rename(folder)
        return folder
