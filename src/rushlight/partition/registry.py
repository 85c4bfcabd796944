"""Backends that are installed: found by their entry points, so that installing one is all."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from rushlight.errors import Code, ExportError
from rushlight.partition.partitioner import Partitioner

GROUP = "rushlight.backends"
"""The group of entry points: a backend's name, to its `Partitioner` class (or a function that
returns a partitioner). The module that it is in defines the backend's `BackendDetails` too."""


def installed() -> list[str]:
    """The names of the backends that programs can be exported for, "portable" first."""
    return ["portable", *sorted({point.name for point in entry_points(group=GROUP)})]


def find_partitioner(name: str) -> Partitioner:
    """The partitioner of an installed backend, with its default options.

    Raises:
        ExportError: if there is no such backend, or it cannot be imported; says what is missing.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise ExportError(
            f"unknown backend {name!r}; installed are {', '.join(installed())}",
            code=Code.NOT_FOUND,
        )
    made = _load(points[name])()
    if not isinstance(made, Partitioner):
        raise ExportError(
            f"the entry point {points[name].value} gives {type(made).__name__}, not a Partitioner",
            code=Code.INVALID_TYPE,
            where=f"backend {name!r}",
        )
    return made


def _load(point: EntryPoint) -> Callable[[], Partitioner]:
    try:
        return point.load()  # type: ignore[no-any-return]
    except ImportError as error:
        raise ExportError(
            f"its package cannot be imported: {error}. Install what is missing; for a backend of "
            f"ours with pip install 'rushlight[{point.name}]'",
            code=Code.NOT_FOUND,
            where=f"backend {point.name!r}",
        ) from error


def import_all() -> None:
    """Import every backend that can be imported, so that its classes are known."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except ImportError:
            continue  # one that nobody asked for
