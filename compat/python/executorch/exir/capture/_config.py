"""Options of lowering, in the module that older scripts name."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig

__all__ = [
    "EdgeCompileConfig",
    "ExecutorchBackendConfig",
]

__getattr__ = absent(__name__, "capture a module with torch.export.export")
