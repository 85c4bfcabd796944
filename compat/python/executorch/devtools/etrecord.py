"""Records of exports."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.inspect import ETRecord, generate_etrecord, parse_etrecord

__all__ = [
    "ETRecord",
    "generate_etrecord",
    "parse_etrecord",
]

__getattr__ = absent(__name__)
