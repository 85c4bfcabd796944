"""The second half of the debug map: names, operators, module paths, coverage; compressed columns.

Only tools read it, as a whole. `docs/file-format.md` describes the format.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any, Generic, TypeVar

from rushlight.schema.debug import DebugCall, DebugLine, DebugMap, DebugMethod, DebugNode
from rushlight.serialize.debug_lines import Brief, MethodLines, Table

T = TypeVar("T")
MAX_BYTES = 1 << 25  # bytes of the columns: a few compressed bytes may claim any number
_MAX_NUMBER = 10**15
_NUMBERED = re.compile(r"(.*)_(0|[1-9][0-9]{0,14})", re.DOTALL)


def write_details(
    debug: DebugMap, table: Mapping[DebugLine, int], brief: Brief, *, modules: bool, coverage: bool
) -> bytes | None:
    """The details; None if they have more bytes than a reader accepts.

    Args:
        debug: the map.
        table: the numbers of its lines.
        brief: maps a line of `debug` to one of the table.
        modules, coverage: whether to write these.
    """
    nodes, strings = _Numbers[DebugNode](), _Numbers[str]()
    methods = []
    for method in debug.methods.values():
        places = [_places(nodes, one.values()) for one in method.delegates]
        entry: dict[str, Any] = {
            "instructions": _differences([nodes(node) for node in method.instructions]),
            "values": [_differences(list(method.values)), list(method.values.values())],
            "places": places,
        }
        if coverage:
            entry["coverage"] = _coverage(method.coverage, nodes, strings)
        methods.append(entry)
    stems, numbers = _split(nodes.listed)
    if sum(map(len, stems)) > MAX_BYTES:
        return None
    document = {
        "methods": methods,
        "nodes": {
            "stem": [strings(stem) for stem in stems],
            "number": numbers,
            "operator": [strings(node.operator) for node in nodes.listed],
            "module": [strings(node.module) for node in nodes.listed] if modules else [],
            "line": _differences([table.get(brief(node.line), 0) for node in nodes.listed]),
            "handle": _differences([node.handle for node in nodes.listed]),
        },
        "strings": strings.listed,
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    return zlib.compress(text, 9) if len(text) <= MAX_BYTES else None


class _Numbers(Generic[T]):
    """Numbers distinct items from 0."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}

    def __call__(self, item: T) -> int:
        return self._numbers.setdefault(item, len(self._numbers))

    @property
    def listed(self) -> list[T]:
        return list(self._numbers)


def _differences(numbers: Sequence[int]) -> list[int]:
    """The difference of each number to the one before; evenly rising numbers compress well so."""
    return [number - before for before, number in zip([0, *numbers], numbers, strict=False)]


def _places(nodes: _Numbers[DebugNode], places: Iterable[Sequence[DebugNode]]) -> list[list[int]]:
    listed = [[nodes(node) for node in place] for place in places]
    return [[len(place) for place in listed], _differences(list(chain.from_iterable(listed)))]


def _coverage(
    calls: Sequence[DebugCall], nodes: _Numbers[DebugNode], strings: _Numbers[str]
) -> dict[str, Any]:
    reasons = _Numbers[tuple[tuple[str, str], ...]]()
    return {
        "node": _differences([nodes(call.node) for call in calls]),
        "backend": [strings(call.backend) for call in calls],
        "part": _differences([call.part for call in calls]),
        "cost": [call.cost for call in calls],
        "reasons": [reasons(call.reasons) for call in calls],
        "listed": [[[strings(b), strings(why)] for b, why in one] for one in reasons.listed],
    }


def _split(nodes: Sequence[DebugNode]) -> tuple[list[str], list[int]]:
    """The stem of each node's name, and the difference of its number to the previous one with this
    stem; a name without a number has -1."""
    stems, numbers = [], []
    last: dict[str, int] = {}
    for node in nodes:
        match = _NUMBERED.fullmatch(node.name)
        stem, number = (match[1], int(match[2])) if match else (node.name, -1)
        stems.append(stem)
        numbers.append(number - last.get(stem, -1))
        last[stem] = number
    return stems, numbers


def read_details(data: memoryview, table: Table) -> dict[str, DebugMethod]:
    """The debug map of each method.

    Args:
        data: the details.
        table: the lines that the details refer to.

    Raises:
        ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError:
            the data are damaged.
    """
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not inflate.eof:
        raise ValueError("the details do not end, or are longer than any program's")
    document = json.loads(text)
    strings = [str(word) for word in document["strings"]]
    nodes = _read_nodes(document["nodes"], strings, table.lines)
    return {
        name: _read_method(entry, strings, nodes, lines)
        for (name, lines), entry in zip(table.methods.items(), document["methods"], strict=True)
    }


def _read_nodes(
    columns: Any, strings: Sequence[str], lines: Sequence[DebugLine]
) -> _Column[DebugNode]:
    nodes = []
    last: dict[int, int] = {}
    left = MAX_BYTES  # characters of all names, since many nodes may have one long stem
    known = _Column([DebugLine(), *lines])
    words = _Column(strings)
    stems = columns["stem"]
    modules = columns["module"] or [None] * len(stems)
    handles = accumulate(columns.get("handle") or [0] * len(stems))
    rows = zip(
        stems,
        columns["number"],
        columns["operator"],
        accumulate(columns["line"]),
        modules,
        handles,
        strict=True,
    )
    for stem, difference, operator, line, module, handle in rows:
        number = last[stem] = last.get(stem, -1) + difference
        left -= len(words[stem])
        if left < 0 or number >= _MAX_NUMBER or not 0 <= handle < _MAX_NUMBER:
            raise ValueError("names that are longer than any program's")
        name = words[stem] if number < 0 else f"{words[stem]}_{number:d}"
        path = "" if module is None else words[module]
        nodes.append(DebugNode(name, words[operator], known[line], path, int(handle)))
    return _Column(nodes)


class _Column(Generic[T]):
    """A list that cannot be indexed from its end."""

    def __init__(self, items: Sequence[T]) -> None:
        self._items = items

    def __getitem__(self, index: int) -> T:
        if index < 0:
            raise IndexError(index)
        return self._items[index]


def _read_method(
    entry: Any, strings: Sequence[str], nodes: _Column[DebugNode], lines: MethodLines
) -> DebugMethod:
    indices, names = entry["values"]
    numbers = (int(index) for index in accumulate(indices))
    delegates = []
    for places, (counts, flat) in zip(lines.delegates, entry["places"], strict=True):
        listed = (nodes[index] for index in accumulate(flat))
        taken = [tuple(islice(listed, max(int(count), 0))) for count in counts]
        delegates.append(dict(zip(places, taken, strict=True)))
    return DebugMethod(
        [nodes[index] for index in accumulate(entry["instructions"])],
        dict(zip(numbers, map(str, names), strict=True)),
        delegates,
        _read_coverage(entry["coverage"], _Column(strings), nodes) if "coverage" in entry else [],
    )


def _read_coverage(
    columns: Any, strings: _Column[str], nodes: _Column[DebugNode]
) -> list[DebugCall]:
    reasons = _Column(
        [tuple((strings[b], strings[why]) for b, why in one) for one in columns["listed"]]
    )
    rows = zip(
        accumulate(columns["node"]),
        columns["backend"],
        accumulate(columns["part"]),
        columns["cost"],
        columns["reasons"],
        strict=True,
    )
    return [
        DebugCall(nodes[node], strings[backend], int(part), float(cost), reasons[why])
        for node, backend, part, cost, why in rows
    ]
