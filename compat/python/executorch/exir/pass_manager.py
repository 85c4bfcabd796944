"""A pass of passes."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.edge import PassManager

__all__ = [
    "PassManager",
]

__getattr__ = absent(__name__, "PassManager takes a list of passes")
