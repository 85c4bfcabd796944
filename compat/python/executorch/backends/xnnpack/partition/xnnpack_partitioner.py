"""XNNPACK's partitioner."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.backends.xnnpack import XnnpackPartitioner

__all__ = [
    "XnnpackPartitioner",
]

__getattr__ = absent(__name__, "XnnpackPartitioner takes floats and quantised values alike")
