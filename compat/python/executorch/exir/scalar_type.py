"""The dtypes of a program file."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.schema.common import ScalarType

__all__ = [
    "ScalarType",
]

__getattr__ = absent(__name__)
