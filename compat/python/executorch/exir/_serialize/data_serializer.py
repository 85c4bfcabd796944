"""Entries of data files."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition.named_data import DataEntry

__all__ = [
    "DataEntry",
]

__getattr__ = absent(__name__, "rushlight.serialize.ptd reads and writes data files")
