"""Options of memory planning."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.edge import MemoryPlanningPass

__all__ = [
    "MemoryPlanningPass",
]

__getattr__ = absent(__name__)
