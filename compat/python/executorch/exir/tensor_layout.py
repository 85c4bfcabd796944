"""The layout of a tensor in a data file."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.schema.flat_tensor import TensorLayout

__all__ = [
    "TensorLayout",
]

__getattr__ = absent(__name__)
