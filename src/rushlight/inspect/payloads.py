"""Readers of backends' payloads, which installed packages offer as entry points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points

from rushlight.errors import LoadError
from rushlight.inspect.model import Actual, Work
from rushlight.schema.codec import Buffer

GROUP = "rushlight.payload_readers"
"""The group of entry points: a backend's id, to its `PayloadReader`, in a module without torch."""


@dataclass(slots=True)
class PayloadNode:
    """One node of a backend's own graph.

    Attributes:
        work: its own work.
        reads, writes: the bytes of its values, by index of the value.
        inputs: what it reads: the indices of the nodes that computed it, or -1 - i for the
            delegate's argument i; each once. Constants are left out.
        results: the types of what it computes, such as "float32[1, 64]"; at upper bounds.
        outputs: the delegate's arguments that it writes.
    """

    work: Work
    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


def _no_scratch(payload: Buffer) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class PayloadReader:
    """Reads a backend's payloads for reports. Both functions raise LoadError for a damaged one.

    Attributes:
        nodes: lists the nodes of a payload in the order of the ids in the backend's events. Takes
            the payload and the sizes or numbers of the delegate's inputs (None if not known).
        scratch_bytes: the scratch that a delegate needs besides its payload; 0 if the payload does
            not say it.
    """

    nodes: Callable[[Buffer, Sequence[Actual | None]], list[PayloadNode]]
    scratch_bytes: Callable[[Buffer], int] = _no_scratch


@cache
def reader_of(backend: str) -> PayloadReader | None:
    """The reader that an installed package offers for a backend; None if there is none, or if it
    cannot be imported, since a report is useful without it."""
    for point in entry_points(group=GROUP, name=backend):
        try:
            reader = point.load()
        except (ImportError, AttributeError):
            continue
        if isinstance(reader, PayloadReader):
            return reader
    return None


def nodes_of(backend: str, payload: Buffer, inputs: Sequence[Actual | None]) -> list[PayloadNode]:
    """The nodes of a payload; empty if the backend has no reader, or the payload is damaged."""
    reader = reader_of(backend)
    try:
        return [] if reader is None else reader.nodes(payload, inputs)
    except LoadError:
        return []


def scratch_of(backend: str, payload: Buffer) -> int:
    """The bytes of scratch that a delegate needs besides its payload; 0 if not known."""
    reader = reader_of(backend)
    try:
        return 0 if reader is None else reader.scratch_bytes(payload)
    except LoadError:
        return 0


def joined(nodes: Mapping[str, PayloadNode], places: Collection[str]) -> dict[str, Work]:
    """The work of each node that reports a time, with that of the nodes before it that report none
    and whose results it uses."""
    owners: dict[str, str] = {}
    readers: dict[int, str] = {}
    for place, node in reversed(list(nodes.items())):
        timed = place if place in places else None
        for value in node.writes:
            timed = timed or owners.get(readers.get(value, ""))
        if timed is not None:
            owners[place] = timed
        readers.update(dict.fromkeys(node.reads, place))
    members: dict[str, list[PayloadNode]] = {}
    for place, owner in reversed(list(owners.items())):
        members.setdefault(owner, []).append(nodes[place])
    return {owner: _together(group) for owner, group in members.items()}


def _together(group: Sequence[PayloadNode]) -> Work:
    if len(group) == 1:
        return group[0].work
    counted = [node.work for node in group if node.work.flops is not None]
    main = counted[0] if counted else group[-1].work
    inner = {value for node in group for value in node.reads}.intersection(
        value for node in group for value in node.writes
    )
    values = {v: n for node in group for v, n in (*node.reads.items(), *node.writes.items())}
    works = [node.work for node in group]
    return Work(
        main.name + "+",
        sum(work.flops or 0 for work in counted) if counted else None,
        sum(n for v, n in values.items() if v not in inner) if values else None,
        list(dict.fromkeys(name for work in works for name in work.nodes)),
        [s for work in works for s in work.sources],
        main.is_integer,
    )
