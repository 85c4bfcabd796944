"""The Edge dialect: functional, dtype-specialised, dim-order aware."""

from rushlight.edge.config import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    MemoryPlanningPass,
)
from rushlight.edge.export_pass import ExportPass, PassManager, PassResult
from rushlight.edge.to_edge import to_edge_dialect

__all__ = [
    "EdgeCompileConfig",
    "ExecutorchBackendConfig",
    "ExportPass",
    "MemoryPlanningPass",
    "PassManager",
    "PassResult",
    "to_edge_dialect",
]
