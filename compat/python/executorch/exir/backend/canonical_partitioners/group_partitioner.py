"""A partitioner that keeps groups of nodes together."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import GroupBasedPartitioner

__all__ = [
    "GroupBasedPartitioner",
]

__getattr__ = absent(__name__)
