"""Core ML's partitioner."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.backends.coreml import CoreMLPartitioner

__all__ = [
    "CoreMLPartitioner",
]

__getattr__ = absent(__name__)
