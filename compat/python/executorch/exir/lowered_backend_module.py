"""Modules that a backend compiled."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import LoweredBackendModule, get_lowered_submodules

__all__ = [
    "LoweredBackendModule",
    "get_lowered_submodules",
]

__getattr__ = absent(__name__)
