"""The order of the compiler's stages.

    ExportedProgram → edge → partition → lower → plan → emit → serialize → .pte

The staged API has ExecuTorch's names; `rushlight.export` (in `rushlight.api`) is one call of it.
"""

from rushlight.pipeline.edge_manager import (
    EdgeProgramManager,
    lowered_to_file,
    to_edge,
    to_edge_transform_and_lower,
)
from rushlight.pipeline.finished import ExecutorchProgramManager

__all__ = [
    "EdgeProgramManager",
    "ExecutorchProgramManager",
    "lowered_to_file",
    "to_edge",
    "to_edge_transform_and_lower",
]
