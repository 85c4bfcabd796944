"""The runtime half, in C: `skeleton_backend.c`, built into a library of this package."""

from pathlib import Path

import skeleton_backend

NAME = "skeleton_backend.so"


def library() -> Path:
    """Where the library is; the entry point of the runtime.

    Raises:
        FileNotFoundError: if it was not built.
    """
    # In an editable install the package has two folders: the sources', and that of what was built.
    for folder in skeleton_backend.__path__:
        if (path := Path(folder) / NAME).is_file():
            return path
    raise FileNotFoundError(
        f"{NAME} is in none of {', '.join(skeleton_backend.__path__)}: install the package again"
    )
