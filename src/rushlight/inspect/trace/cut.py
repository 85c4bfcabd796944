"""Reads what there is of an ETDump that was cut, such as by a copy that broke off.

Texts are at the end of a dump, behind all events, so that they are lost first. The event of an
instruction has its index, whose operator the program knows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from rushlight.errors import LoadError
from rushlight.schema import etdump as fb
from rushlight.schema.codec import Bytes, Child, Children, Field, Reader, Text

_LOST = "lost text "


def is_lost(text: str | None) -> bool:
    """Whether a text of a dump stands for one that was lost."""
    return text is not None and text.startswith(_LOST)


def read_cut(view: memoryview) -> tuple[fb.ETDump, str]:
    """The blocks and events that are there, and what was lost, in words.

    A text that was lost is "lost text 1234", by its place in the file, so that equal texts stay
    equal. A block whose name was lost is "Execute" if it has an event of an instruction, else
    "Default"; the event of all of it has the name that such events have.

    Args:
        view: the beginning of a dump, without its size.

    Raises:
        LoadError: not even the first table is there, or it is damaged.
    """
    reader = _CutReader(view)
    dump = reader.table(fb.ETDump, reader.follow(0, "ETDump"))
    runs = []
    for run in dump.run_data:
        events = [event for event in run.events if _has_content(event)]
        reader.events += len(run.events) - len(events)
        run.events = events
        _restore_names(run)
        if events:
            runs.append(run)
    dump.run_data = runs
    told = (
        f"{len(reader.texts):,} texts",
        f"{reader.events:,} events",
        f"{reader.blocks:,} blocks",
    )
    return dump, ", ".join(one for one in told if not one.startswith("0 "))


def _has_content(event: fb.Event) -> bool:
    parts = (event.profile_event, event.allocation_event, event.debug_event)
    return any(part is not None for part in parts)


def _restore_names(run: fb.RunData) -> None:
    profiles = [event.profile_event for event in run.events if event.profile_event is not None]
    if is_lost(run.name):
        is_run = any(one.chain_index >= 0 and one.instruction_id >= 0 for one in profiles)
        run.name = "Execute" if is_run else "Default"
    for one in profiles:
        if is_lost(one.name) and one.chain_index < 0 and one.instruction_id >= 0:
            one.name = "Method::execute" if run.name == "Execute" else "Method::init"


class _CutReader(Reader):
    """Takes what is behind the end of the data as absent.

    Attributes:
        texts: where the texts that are lost would be.
        events: how many events are lost, without those of lost blocks.
        blocks: how many blocks are lost.
    """

    def __init__(self, data: memoryview) -> None:
        super().__init__(fb.ETDUMP, data, views=False)
        self._bytes = data
        self.texts: set[int] = set()
        self.events = 0
        self.blocks = 0

    def field(self, f: Field, table: str, at: int) -> Any:
        """See `Reader.field`; what is not there is None, or stands for a text."""
        if isinstance(f, Children):
            return list(self._items(f, at))
        try:
            return super().field(f, table, at)
        except LoadError:
            if isinstance(f, Text):
                place = at + self._number(at)
                self.texts.add(place)
                return f"{_LOST}{place}"
            if isinstance(f, Child | Bytes) and f.optional:
                return None
            raise

    def _items(self, f: Children, at: int) -> Iterator[Any]:
        """The tables of a vector up to the first that is not there."""
        start = at + self._number(at)
        count = self._number(start) if start + 4 <= len(self._bytes) else 0
        for i in range(count):
            try:
                yield self.table(f.table, self.follow(start + 4 + 4 * i, f.name))
            except LoadError:
                if f.table is fb.Event:
                    self.events += count - i
                elif f.table is fb.RunData:
                    self.blocks += count - i
                return

    def _number(self, at: int) -> int:
        return int(struct.unpack_from("<I", self._bytes, at)[0])
