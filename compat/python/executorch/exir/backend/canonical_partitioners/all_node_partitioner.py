"""A partitioner that takes the whole graph."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import AllNodePartitioner

__all__ = [
    "AllNodePartitioner",
]

__getattr__ = absent(__name__)
