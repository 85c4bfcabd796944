"""What the payloads of backends hold: readers that backends give, found by their entry points."""

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
        work: what it does by itself.
        reads, writes: the bytes of its values, by their numbers.
    """

    work: Work
    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)


def _no_scratch(payload: Buffer) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class PayloadReader:
    """Reads a backend's payloads for reports. Both functions raise LoadError for a damaged one.

    Attributes:
        nodes: the nodes that the backend's events count, given the payload and what the delegate's
            inputs are in a run (None where that is not known).
        scratch_bytes: the memory that a delegate allocates beside its payload; 0 if the payload
            does not say it.
    """

    nodes: Callable[[Buffer, Sequence[Actual | None]], list[PayloadNode]]
    scratch_bytes: Callable[[Buffer], int] = _no_scratch


@cache
def reader_of(backend: str) -> PayloadReader | None:
    """The reader that an installed package gives for a backend; None if there is none, or if it
    cannot be imported: a report is worth having without it."""
    for point in entry_points(group=GROUP, name=backend):
        try:
            reader = point.load()
        except (ImportError, AttributeError):
            continue
        if isinstance(reader, PayloadReader):
            return reader
    return None


def nodes_of(backend: str, payload: Buffer, inputs: Sequence[Actual | None]) -> list[PayloadNode]:
    """The nodes of a payload; none if nobody reads the backend's payloads, or it is damaged."""
    reader = reader_of(backend)
    try:
        return [] if reader is None else reader.nodes(payload, inputs)
    except LoadError:
        return []


def scratch_of(backend: str, payload: Buffer) -> int:
    """The bytes that a delegate needs beside its payload; 0 if that is not known."""
    reader = reader_of(backend)
    try:
        return 0 if reader is None else reader.scratch_bytes(payload)
    except LoadError:
        return 0


def joined(nodes: Mapping[str, PayloadNode], places: Collection[str]) -> dict[str, Work]:
    """What is done under each place that reports a time: its node, and those before it that report
    none and whose results lead there."""
    owners: dict[str, str] = {}
    readers: dict[int, str] = {}
    for place, node in reversed(list(nodes.items())):
        found = place if place in places else None
        for value in node.writes:
            found = found or owners.get(readers.get(value, ""))
        if found is not None:
            owners[place] = found
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
