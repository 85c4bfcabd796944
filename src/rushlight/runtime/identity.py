"""Identities of registered backends: a known answer is remembered for one identity only."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rushlight import _core

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_CODE = {".py", ".so", ".pyd", ".dll", ".dylib"}

_parts: dict[str, tuple[str, tuple[Path, ...]] | None] = {}
"""A text and files for each backend that was registered here; None if it has no identity."""


def made_of_files(id: str, *files: Path) -> None:
    """The backend's code is in these files."""
    _parts[id] = ("", files)


def made_of_package(id: str, point: EntryPoint, backend: Any) -> None:
    """The backend's code is in an installed package.

    Args:
        id: the backend's id.
        point: its entry point.
        backend: the object, if the backend is in Python; its `version()`, if it has one, is part of
            the identity.
    """
    version = getattr(backend, "version", None)
    text = f"{version() if callable(version) else ''}"
    if point.dist is not None:
        text += f" {point.dist.name} {point.dist.version}"
    known = _parts.get(id)
    files = () if known is None else known[1]
    _parts[id] = (text, (*files, *_files_of(point.module)))


def made_of_nothing_known(id: str) -> None:
    """The backend is an object of this process, which may change at any time."""
    _parts[id] = None


def identity_of(id: str) -> str | None:
    """A text that changes with the backend's version and files; None if it has no identity."""
    parts = _parts.get(
        id, ("", (Path(_core.__file__),))
    )  # a backend that is not listed came with the runtime
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
    """The file of a module; if the module is in a package, all code of that package."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return
    folder = Path(file).parent
    if not (folder / "__init__.py").is_file():
        yield Path(file)
        return
    yield from sorted(p for p in folder.rglob("*") if p.suffix in _CODE and p.is_file())
