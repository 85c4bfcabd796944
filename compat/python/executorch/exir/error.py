"""Errors."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.errors import ExportError

__all__ = [
    "ExportError",
]

__getattr__ = absent(__name__, "catch ExportError")
