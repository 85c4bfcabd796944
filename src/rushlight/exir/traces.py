"""Traces of runs (ETDump) as dataclasses."""

from __future__ import annotations

from rushlight.inspect.trace.etdump import read_etdump
from rushlight.schema import etdump


def deserialize_from_etdump_flatcc(data: bytes) -> etdump.ETDump:
    """The content of a trace, with or without its size in front."""
    return read_etdump(data)


def serialize_to_etdump_flatcc(trace: etdump.ETDump) -> bytes:
    """The file of a trace."""
    return etdump.pack(trace)
