"""The runtime half, in C: `skeleton_backend.c`, built into a library of this package."""

import sys
from pathlib import Path

NAME = "skeleton_backend.so"


def library() -> Path:
    """Where the library is; the entry point of the runtime.

    Raises:
        FileNotFoundError: if it was not built.
    """
    folders = sys.modules[__package__].__path__  # two if it is editable: sources, what was built
    for folder in folders:
        if (path := Path(folder) / NAME).is_file():
            return path
    raise FileNotFoundError(f"{NAME} is in none of {', '.join(folders)}: install the package again")
