"""Export, lowering and their options."""

from __future__ import annotations

from torch.export import ExportedProgram, ExportGraphSignature, load, save

from executorch._absent import absent
from executorch.exir import memory
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig
from rushlight.pipeline import (
    EdgeProgramManager,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)

__all__ = [
    "EdgeCompileConfig",
    "EdgeProgramManager",
    "ExecutorchBackendConfig",
    "ExecutorchProgramManager",
    "ExportGraphSignature",
    "ExportedProgram",
    "load",
    "memory",
    "save",
    "to_edge",
    "to_edge_transform_and_lower",
]

__getattr__ = absent(
    __name__,
    "capture a module with torch.export.export, then call to_edge or to_edge_transform_and_lower",
)
