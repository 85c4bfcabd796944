"""Developer tools."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.inspect import ETRecord, Inspector, generate_etrecord, parse_etrecord

__all__ = [
    "ETRecord",
    "Inspector",
    "generate_etrecord",
    "parse_etrecord",
]

__getattr__ = absent(__name__, "rushlight.bundle makes programs with test cases")
