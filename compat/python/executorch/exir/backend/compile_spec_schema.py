"""Options for a backend."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import CompileSpec

__all__ = [
    "CompileSpec",
]

__getattr__ = absent(__name__)
