"""The first half of the debug map: the lines of instructions and places, which are read in place.

`docs/file-format.md` describes the format; `cpp/module/debug/debug_lines.cpp` reads it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from rushlight.schema.debug import DebugLine, DebugMap, DebugNode
from rushlight.serialize.sequences import MAX_NUMBERS, Sequences, write_sequence
from rushlight.serialize.varints import Reader, Writer

MAX_TEXT = 1 << 26  # bytes of all strings: with shared prefixes a few bytes may claim any number

T = TypeVar("T")
Nodes = tuple[DebugNode, ...]
Brief = Callable[[DebugLine], DebugLine]
"""Maps a line to the line that is written, such as one with a shorter text."""


@dataclass
class MethodLines:
    """A method's instructions and the places in its delegates, with their lines: each line is a
    node with no other field."""

    instructions: list[Nodes] = field(default_factory=list)
    delegates: list[dict[str, Nodes]] = field(default_factory=list)


@dataclass
class Table:
    """All lines of a map, and the lines of its methods."""

    lines: list[DebugLine] = field(default_factory=list)
    methods: dict[str, MethodLines] = field(default_factory=dict)


def line_table(debug: DebugMap, brief: Brief) -> dict[DebugLine, int]:
    """The number, from 1, of every line in the map, in order of file, function and line."""
    nodes: dict[DebugNode, None] = {}
    for method in debug.methods.values():
        nodes.update(dict.fromkeys(method.instructions))
        for places in method.delegates:
            for listed in places.values():
                nodes.update(dict.fromkeys(listed))
        nodes.update(dict.fromkeys(call.node for call in method.coverage))
    lines = {brief(line) for line in {node.line for node in nodes}}
    known = (line for line in lines if line.file)
    ordered = sorted(known, key=lambda x: (x.file, x.function, x.number, x.text))
    return {line: number for number, line in enumerate(ordered, start=1)}


def write_lines(
    debug: DebugMap, table: Mapping[DebugLine, int], brief: Brief, places: bool
) -> bytes | None:
    """The half of the map that is read in place; None if it exceeds a reader's limits.

    Args:
        debug: the map.
        table: its lines, as `line_table` numbers them.
        brief: maps a line of `debug` to one of the table.
        places: whether to write the places in delegates.
    """
    words = {word for line in table for word in (line.file, line.function, line.text)}
    words |= set(debug.methods)
    if places:
        for method in debug.methods.values():
            for one in method.delegates:
                words |= {keys[0] for first, keys in _rising(one) if first is None}
    encoded = sorted({word.encode("utf-8", "replace") for word in words} - {b""})
    if sum(map(len, encoded)) > MAX_TEXT:
        return None
    strings = {word: i for i, word in enumerate(encoded, start=1)} | {b"": 0}
    writer = _LinesWriter(strings, table, brief)
    methods = Writer()
    for name, method in debug.methods.items():
        methods.number(writer.string(name))
        body = Writer()
        body.sized(writer.instructions(method.instructions))
        for one in method.delegates if places else ():
            body.sized(writer.places(one))
        methods.sized(body.data)
    if writer.count > MAX_NUMBERS:
        return None
    out = Writer()
    for section in (_strings(encoded), writer.lines(), writer.sets(), methods.data):
        out.sized(section)
    return bytes(out.data)


def _number(key: str) -> int | None:
    """The number in an id; None if the id is not a number."""
    is_number = key.isascii() and key.isdigit() and len(key) < 16 and str(int(key)) == key
    return int(key) if is_number else None


def _rising(keys: Iterable[str]) -> Iterator[tuple[int | None, list[str]]]:
    """Runs of ids that are numbers and rise by 1: (first number, ids). Any other id is a run of its
    own without a number, and so is a number that is less than one before it."""
    first, run = 0, list[str]()
    for key in keys:
        number = _number(key)
        if number == first + len(run):
            run.append(key)
        elif number is None or number < first + len(run):
            if run:
                yield first, run
            first, run = first + len(run), []
            yield None, [key]
        else:
            if run:
                yield first, run
            first, run = number, [key]
    if run:
        yield first, run


def _strings(encoded: Sequence[bytes]) -> bytearray:
    """Sorted strings, each without the prefix that it shares with the one before."""
    out, before = Writer(), b""
    for word in encoded:
        shared, most = 0, min(len(word), len(before))
        while shared < most and word[shared] == before[shared]:
            shared += 1
        out.number(shared)
        out.sized(word[shared:])
        before = word
    return out.data


class _LinesWriter:
    """Writes references: 0 for no line, the number of a line, or a greater one for a set of lines.

    Attributes:
        count: the numbers that a reader of all this makes, for which it has a limit.
    """

    def __init__(
        self, strings: Mapping[bytes, int], table: Mapping[DebugLine, int], brief: Brief
    ) -> None:
        self._strings = strings
        self._table = table
        self._brief = brief
        self._sets: dict[tuple[int, ...], int] = {}
        self.count = 0

    def string(self, word: str) -> int:
        return self._strings[word.encode("utf-8", "replace")]

    def instructions(self, nodes: Sequence[DebugNode]) -> bytearray:
        self.count += len(nodes)
        return write_sequence([self._reference((node,)) for node in nodes])

    def places(self, places: Mapping[str, Sequence[DebugNode]]) -> bytearray:
        """The ids, then their references. A run of ids that rise by 1 is `count << 1` and the first
        number less the next one expected; any other id is the number of its text, marked by 1."""
        ids, next_id = Writer(), 0
        for first, keys in _rising(places):
            if first is None:
                ids.number(self.string(keys[0]) << 1 | 1)
                continue
            ids.number(len(keys) << 1)
            ids.number(first - next_id)
            self.count += len(keys)
            next_id = first + len(keys)
        out = Writer()
        out.sized(ids.data)
        self.count += len(places)
        return out.data + write_sequence([self._place(nodes) for nodes in places.values()])

    def _place(self, nodes: Iterable[DebugNode]) -> int:
        numbers = self._numbers(nodes)
        self.count += len(numbers)
        return self._reference_to(numbers)

    def _reference(self, nodes: Iterable[DebugNode]) -> int:
        return self._reference_to(self._numbers(nodes))

    def _numbers(self, nodes: Iterable[DebugNode]) -> tuple[int, ...]:
        """The numbers of the nodes' lines, each once."""
        lines = (self._brief(node.line) for node in nodes)
        return tuple(dict.fromkeys(self._table[line] for line in lines if line.file))

    def _reference_to(self, numbers: tuple[int, ...]) -> int:
        if len(numbers) < 2:
            return numbers[0] if numbers else 0
        return self._sets.setdefault(numbers, len(self._table) + 1 + len(self._sets))

    def lines(self) -> bytearray:
        """Blocks of the lines of one function."""
        out = Writer()
        for (file, function), block in groupby(self._table, key=lambda x: (x.file, x.function)):
            listed = list(block)
            out.number(self.string(file))
            out.number(self.string(function))
            out.number(len(listed))
            before = 0
            for line in listed:
                out.signed(line.number - before)
                out.number(self.string(line.text))
                before = line.number
        return out.data

    def sets(self) -> bytearray:
        out = Writer()
        for numbers in self._sets:
            out.number(len(numbers))
            before = 0
            for number in numbers:
                out.signed(number - before)
                before = number
        return out.data


def read_lines(data: memoryview) -> tuple[Table, int]:
    """The lines of a map, and the number of bytes that were read.

    Raises:
        ValueError: the data are damaged.
    """
    reader = Reader(data)
    strings = _read_strings(reader.sized())
    lines = _read_blocks(reader.sized(), strings)
    nodes = [DebugNode(line=line) for line in lines]
    known: list[Nodes] = [(), *((node,) for node in nodes)]
    sets = reader.sized()
    while sets:
        number, listed = 0, []
        for _ in range(sets.number()):
            number += sets.signed()
            listed.append(_at(nodes, number - 1))
        known.append(tuple(listed))
    table, sequences = Table(lines), Sequences()
    methods = reader.sized()
    while methods:
        name = _at(strings, methods.number())
        table.methods[name] = _read_method(methods.sized(), strings, known, sequences)
    return table, reader.position


def _at(items: Sequence[T], index: int) -> T:
    if not 0 <= index < len(items):
        raise ValueError("a reference to an entry that is not there")
    return items[index]


def _read_strings(reader: Reader) -> list[str]:
    before, strings, total = b"", [""], 0
    while reader:
        shared = reader.number()
        if shared > len(before):
            raise ValueError("a string shares more characters than the one before it has")
        before = before[:shared] + bytes(reader.take(reader.number()))
        total += len(before)
        if total > MAX_TEXT:
            raise ValueError("strings that are longer than any program's")
        strings.append(before.decode("utf-8", "replace"))
    return strings


def _read_blocks(reader: Reader, strings: Sequence[str]) -> list[DebugLine]:
    lines = []
    while reader:
        file, function = _at(strings, reader.number()), _at(strings, reader.number())
        number = 0
        for _ in range(reader.number()):
            number += reader.signed()
            lines.append(DebugLine(file, number, function, _at(strings, reader.number())))
    return lines


def _read_method(
    reader: Reader, strings: Sequence[str], known: Sequence[Nodes], sequences: Sequences
) -> MethodLines:
    lines = MethodLines([_at(known, i) for i in sequences.read(reader.sized())])
    while reader:
        delegate = reader.sized()
        ids = list(_read_ids(delegate.sized(), strings, sequences))
        nodes = [_at(known, i) for i in sequences.read(delegate)]
        sequences.count(sum(map(len, nodes)))
        lines.delegates.append(dict(zip(ids, nodes, strict=True)))
    return lines


def _read_ids(reader: Reader, strings: Sequence[str], sequences: Sequences) -> Iterator[str]:
    next_id = 0
    while reader:
        head = reader.number()
        if head & 1:
            yield _at(strings, head >> 1)
            continue
        first = next_id + reader.number()
        next_id = first + sequences.count(head >> 1)
        yield from map(str, range(first, next_id))
