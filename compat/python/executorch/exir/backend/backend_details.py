"""What a backend is."""

from __future__ import annotations

from torch.export import ExportedProgram

from executorch._absent import absent
from rushlight.partition import BackendDetails, CompileSpec, PreprocessResult

__all__ = [
    "BackendDetails",
    "CompileSpec",
    "ExportedProgram",
    "PreprocessResult",
]

__getattr__ = absent(__name__)
