"""Passes, and the options of memory planning."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.edge import ExportPass, MemoryPlanningPass

__all__ = [
    "ExportPass",
    "MemoryPlanningPass",
]

__getattr__ = absent(__name__, "the stages of lowering run their passes themselves")
