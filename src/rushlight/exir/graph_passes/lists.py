"""The passes that ExecuTorch's lowering to the Edge dialect runs, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.exir.graph_passes.handles import DebugHandleGeneratorPass
from rushlight.exir.graph_passes.numbers_to_tensors import ScalarToTensorPass, SymToTensorPass
from rushlight.exir.graph_passes.removals import (
    PruneEmptyTensorsPass,
    RemoveNoopPass,
    RemoveToCopyPass,
    dead_code_elimination_pass,
)
from rushlight.exir.graph_passes.respelling import (
    NormalizeTransposePass,
    ReplaceBrokenOpsWithFunctionalOpsPass,
    ReplaceSymSizeOpPass,
)

base_pre_op_replace_passes: list[Callable[..., Any]] = [
    ReplaceSymSizeOpPass(),
    NormalizeTransposePass(),
    ReplaceBrokenOpsWithFunctionalOpsPass(),
    ScalarToTensorPass(),
    SymToTensorPass(),
    RemoveNoopPass(),
    PruneEmptyTensorsPass(),
    RemoveToCopyPass(),
]
"""Passes over a captured graph, before `OpReplacePass`. `to_edge` runs passes of its own."""

base_post_op_replace_passes: list[Callable[..., Any]] = [
    dead_code_elimination_pass,
    DebugHandleGeneratorPass(),
]
"""Passes after it."""
