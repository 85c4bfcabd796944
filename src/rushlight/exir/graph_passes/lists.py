"""The passes that ExecuTorch's lowering to the Edge dialect runs, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.edge import EdgeCompileConfig
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.graph_passes.backend_numbers import EdgeToBackendOpsPass
from rushlight.exir.graph_passes.handles import DebugHandleGeneratorPass
from rushlight.exir.graph_passes.layouts import LegalizePortableDimOrderPass
from rushlight.exir.graph_passes.numbers_to_tensors import ScalarToTensorPass, SymToTensorPass
from rushlight.exir.graph_passes.out_variants import ToOutVarPass
from rushlight.exir.graph_passes.removals import (
    PruneEmptyTensorsPass,
    RemoveGraphAssertsPass,
    RemoveNoopPass,
    RemoveToCopyPass,
    dead_code_elimination_pass,
)
from rushlight.exir.graph_passes.respelling import (
    NormalizeTransposePass,
    ReplaceBrokenOpsWithFunctionalOpsPass,
    ReplaceSymSizeOpPass,
)
from rushlight.exir.graph_passes.shapes import ConstraintBasedSymShapeEvalPass
from rushlight.exir.graph_passes.spec_prop import SpecPropPass
from rushlight.exir.graph_passes.views import NormalizeViewCopyBasePass, ReplaceViewCopyWithViewPass

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


def edge_to_executorch_passes(
    config: ExecutorchBackendConfig,
    name: str | None = None,
    edge_compile_config: EdgeCompileConfig | None = None,
) -> list[Callable[..., Any]]:
    """The passes from a graph of the Edge dialect to one of out variants, before memory is planned.

    `to_executorch` runs passes of its own.

    Args:
        config: its passes come first; its `sym_shape_eval_pass` and `to_out_var_pass` are taken.
        name: of the method, if the config has a pass for each.
        edge_compile_config: whether there are operators of dim orders.
    """
    edge_config = edge_compile_config or EdgeCompileConfig()
    shapes = config.sym_shape_eval_pass
    if isinstance(shapes, dict):
        shapes = shapes.get(name)
    passes: list[Callable[..., Any]] = list(config.passes)
    if not edge_config._skip_dim_order:
        passes.append(LegalizePortableDimOrderPass())
    passes += [SpecPropPass(), EdgeToBackendOpsPass(), RemoveGraphAssertsPass()]
    if config.remove_view_copy:
        passes += [
            NormalizeViewCopyBasePass(),
            dead_code_elimination_pass,
            ReplaceViewCopyWithViewPass(),
        ]
    return [
        *passes,
        shapes or ConstraintBasedSymShapeEvalPass(),
        config.to_out_var_pass or ToOutVarPass(),
    ]
