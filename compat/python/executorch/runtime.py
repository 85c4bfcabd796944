"""Running programs; needs no torch."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.runtime import Method, Program, Runtime, Verification

__all__ = [
    "Method",
    "Program",
    "Runtime",
    "Verification",
]

__getattr__ = absent(__name__, "rushlight.runtime has register_backend and register_kernel")
