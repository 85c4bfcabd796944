"""The XNNPACK backend."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.backends.xnnpack import XnnpackBackend, XnnpackPartitioner

__all__ = [
    "XnnpackBackend",
    "XnnpackPartitioner",
]

__getattr__ = absent(__name__, "XnnpackPartitioner takes floats and quantised values alike")
