"""Finds installed backends by their entry points, so that installing a package is enough."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.partition.partitioner import Partitioner

GROUP = "rushlight.backends"
"""The group of entry points from a backend's name to its `Partitioner` class (or to a function that
returns a partitioner)."""
DETAILS = "rushlight.backend_details"
"""The group of entry points from a backend's id to its `BackendDetails` class."""

STAGES = "rushlight.stages"
"""The group of entry points from the name of a later stage to its function."""


def installed() -> list[str]:
    """The names of the backends that programs can be exported for, "portable" first."""
    return ["portable", *sorted({point.name for point in entry_points(group=GROUP)})]


def find_partitioner(name: str) -> Partitioner:
    """The partitioner of an installed backend, with its default options.

    Raises:
        ExportError: if there is no such backend, or it cannot be imported; it says what is missing.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise ExportError(
            f"unknown backend {name!r}; installed are {', '.join(installed())}",
            code=Code.NOT_FOUND,
        )
    made = _load(points[name], f"backend {name!r}")()
    if not isinstance(made, Partitioner):
        raise ExportError(
            f"the entry point {points[name].value} gives {type(made).__name__}, not a Partitioner",
            code=Code.INVALID_TYPE,
            where=f"backend {name!r}",
        )
    return made


def _load(point: EntryPoint, where: str) -> Any:
    try:
        return point.load()
    except ImportError as error:
        raise ExportError(
            f"its package cannot be imported: {error}. Install what is missing{_extra_of(point)}",
            code=Code.NOT_FOUND,
            where=where,
        ) from error


def _extra_of(point: EntryPoint) -> str:
    """Advice to install the extra of the backend's package that is named like its module; or ""."""
    extras = () if point.dist is None else point.dist.metadata.get_all("Provides-Extra") or ()
    named = [extra for extra in extras if extra in point.value.partition(":")[0].split(".")]
    return f": pip install '{point.dist.name}[{named[0]}]'" if point.dist and named else ""


def import_details(id: str) -> None:
    """Import the module that defines the `BackendDetails` with this id, if an installed package
    offers it; no other package is imported.

    Raises:
        ExportError: if it cannot be imported; it says what is missing.
    """
    for point in entry_points(group=DETAILS, name=id):
        _load(point, f"backend {point.name!r}")


def find_stage(name: str) -> Callable[..., Any]:
    """The function of a later stage, which this stage must not import itself.

    Raises:
        ExportError: if it is not installed, or cannot be imported.
    """
    for point in entry_points(group=STAGES, name=name):
        stage: Callable[..., Any] = _load(point, f"stage {name!r}")
        return stage
    raise ExportError(
        f"no installed package has the stage {name!r}: install rushlight again, so that its entry "
        f"points are those of its sources",
        code=Code.NOT_FOUND,
    )
