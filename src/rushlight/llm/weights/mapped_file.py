"""Files of weights, mapped: what is read of them takes memory only until it is given back."""

from __future__ import annotations

import mmap
from pathlib import Path


def mapped(path: Path) -> mmap.mmap:
    """The bytes of a file that is not empty.

    Args:
        path: of the file.
    """
    with path.open("rb") as file:
        # Private: torch wants memory that it may write, and nothing is written.
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
