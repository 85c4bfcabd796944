"""XNNPACK's compiler."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.backends.xnnpack import XnnpackBackend

__all__ = [
    "XnnpackBackend",
]

__getattr__ = absent(__name__)
