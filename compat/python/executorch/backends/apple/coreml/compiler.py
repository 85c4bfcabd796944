"""Core ML's compiler."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.backends.coreml import CoreMLBackend

__all__ = [
    "CoreMLBackend",
]

__getattr__ = absent(__name__)
