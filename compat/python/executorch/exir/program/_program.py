"""Managers of programs, in the module that older scripts name."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.pipeline import (
    EdgeProgramManager,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)

__all__ = [
    "EdgeProgramManager",
    "ExecutorchProgramManager",
    "to_edge",
    "to_edge_transform_and_lower",
]

__getattr__ = absent(
    __name__,
    "capture a module with torch.export.export, then call to_edge or to_edge_transform_and_lower",
)
