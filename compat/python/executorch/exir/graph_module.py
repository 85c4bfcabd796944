"""The graphs inside a graph."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import get_control_flow_submodules

__all__ = [
    "get_control_flow_submodules",
]

__getattr__ = absent(__name__)
