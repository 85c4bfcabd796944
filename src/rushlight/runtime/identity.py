"""What a registered backend is made of: what is remembered of it is remembered for that alone."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from rushlight import _core

_CODE = {".py", ".so", ".pyd", ".dll", ".dylib"}

_parts: dict[str, tuple[str, tuple[Path, ...]] | None] = {}
"""Of backends that were registered here, a text and files; None: nothing tells what it is."""


def made_of_files(id: str, *files: Path) -> None:
    """The backend is what these files have."""
    _parts[id] = ("", files)


def made_of_package(id: str, point: metadata.EntryPoint, backend: Any) -> None:
    """The backend is what an entry point led to.

    Args:
        id: the backend's.
        point: the entry point.
        backend: the object, if it is one in Python: its `version()`, if it has one, says what else
            its results depend on.
    """
    version = getattr(backend, "version", None)
    text = f"{version() if callable(version) else ''}"
    if point.dist is not None:
        text += f" {point.dist.name} {point.dist.version}"
    known = _parts.get(id)
    files = () if known is None else known[1]
    _parts[id] = (text, (*files, *_files_of(point.module)))


def made_of_nothing_known(id: str) -> None:
    """The backend is an object of the process: it may change at any time."""
    _parts[id] = None


def identity_of(id: str) -> str | None:
    """A text that is another one when the backend's version or files are; None if nothing tells."""
    parts = _parts.get(id, ("", (Path(_core.__file__),)))  # what is not in it came with the runtime
    if parts is None:
        return None
    text, files = parts
    made = hashlib.sha256(f"{id} {text}".encode())
    try:
        for file in files:
            status = file.stat()
            made.update(_digest(file, status.st_size, status.st_mtime_ns))
    except OSError:
        return None
    return made.hexdigest()


@lru_cache(maxsize=1024)
def _digest(file: Path, size: int, time_ns: int) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


def _files_of(module: str) -> Iterator[Path]:
    """The file of a module; if it stands in a package, all code of that."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return
    folder = Path(file).parent
    if not (folder / "__init__.py").is_file():
        yield Path(file)
        return
    yield from sorted(p for p in folder.rglob("*") if p.suffix in _CODE and p.is_file())
