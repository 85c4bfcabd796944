"""Mutants of what developer tools read: a trace, its values, and the record of an export.

`read` reads all that there is to be seen of them; anything but an error of ours is a finding.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import NamedTuple

from attack import tables
from attack.mutants import changed, damaged
from rushlight.errors import Error
from rushlight.inspect import Inspector
from rushlight.inspect.trace.chrome import chrome_trace
from rushlight.inspect.trace.etdump import read_etdump
from rushlight.inspect.trace.statistics import KEYS
from rushlight.schema import etdump


class TraceFiles(NamedTuple):
    """The contents of the files."""

    dump: bytes
    values: bytes
    record: bytes


def mutant(files: TraceFiles, number: int) -> tuple[str, TraceFiles]:
    """The way and the files of mutant `number`, always the same."""
    chance = random.Random(number)
    way = chance.choice(list(_WAYS))
    return way, _WAYS[way](files, chance)


def read(files: TraceFiles, *, programs: bool) -> bool:
    """Read the files; whether a trace can be shown.

    Args:
        files: of a trace.
        programs: also those of the record, for which torch is needed.
    """
    if programs:
        _only_ours(lambda: _parse(files.record))
    made = _only_ours(
        lambda: Inspector(
            etdump_data=files.dump,
            debug_buffer=files.values,
            etrecord=io.BytesIO(files.record),
        )
    )
    _only_ours(lambda: chrome_trace(read_etdump(files.dump)))
    if made is None:
        return False
    assert isinstance(made, Inspector)
    for key in KEYS:
        made.group_by(key)
    made.outliers()
    made.compare(made)
    made.find_total_for_module("0")
    made.to_dataframe(include_delegate_debug_data=True)
    for block in made.event_blocks:
        made.get_op_list(block.name)
    assert len(made.dropped) == 2
    return True


def _parse(record: bytes) -> object:
    from rushlight.inspect import parse_etrecord

    return parse_etrecord(io.BytesIO(record))


def _only_ours(use: Callable[[], object]) -> object:
    try:
        return use()
    except Error:
        return None


def _dump_bytes(files: TraceFiles, chance: random.Random) -> TraceFiles:
    return files._replace(dump=damaged(files.dump, chance))


def _dump_tables(files: TraceFiles, chance: random.Random) -> TraceFiles:
    root = etdump.unpack(memoryview(files.dump)[4:])
    tables.mutate([root], chance)
    try:
        content = etdump.pack(root)
    except Exception:  # numbers that the format cannot hold
        return _dump_bytes(files, chance)
    return files._replace(dump=len(content).to_bytes(4, "little") + content)


def _values(files: TraceFiles, chance: random.Random) -> TraceFiles:
    return files._replace(values=files.values[: chance.randrange(len(files.values) + 1)])


def _record_bytes(files: TraceFiles, chance: random.Random) -> TraceFiles:
    return files._replace(record=damaged(files.record, chance))


def _record_entry(files: TraceFiles, chance: random.Random) -> TraceFiles:
    entries = entries_of(files.record)
    name = chance.choice(sorted(entries))
    way = chance.randrange(6)
    if way == 0:
        del entries[name]
    elif way == 1:
        entries[name] = entries[chance.choice(sorted(entries))]
    elif way == 2:
        entries[chance.choice(("../../x", "/etc/x", "x\\y", " ", "a/b/c"))] = entries[name]
    elif way == 3 or not entries[name].startswith((b"{", b"[")):
        entries[name] = damaged(entries[name], chance)
    else:
        entries[name] = changed(json.loads(entries[name]), chance)
    return files._replace(record=record_of(entries, chance.random() < 0.2))


def entries_of(record: bytes) -> dict[str, bytes]:
    """The contents of a record's entries, by name."""
    with zipfile.ZipFile(io.BytesIO(record)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def record_of(entries: dict[str, bytes], compressed: bool = False) -> bytes:
    """A record with these entries."""
    file = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


_WAYS: dict[str, Callable[[TraceFiles, random.Random], TraceFiles]] = {
    "dump bytes": _dump_bytes,
    "dump tables": _dump_tables,
    "values": _values,
    "record bytes": _record_bytes,
    "record entry": _record_entry,
}
