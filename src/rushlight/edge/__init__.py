"""The Edge dialect: functional, dtype-specialised, dim-order aware."""

from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge.config import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    MemoryPlanningPass,
)
from rushlight.edge.export_pass import ExportPass
from rushlight.edge.pass_manager import PassManager
from rushlight.edge.to_edge import to_edge_dialect
from rushlight.ir.custom_ops.executorch import define as define_executorch_operators
from rushlight.ir.kernels import register_operator

__all__ = [
    "EdgeCompileConfig",
    "ExecutorchBackendConfig",
    "ExportPass",
    "MemoryPlanningPass",
    "PassManager",
    "PassResult",
    "define_executorch_operators",
    "register_operator",
    "to_edge_dialect",
]
