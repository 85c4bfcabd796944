"""`ExecutorchBackendConfig` with all options that ExecuTorch has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight import edge
from rushlight.errors import Code, ExportError

_Config = edge.ExecutorchBackendConfig


@dataclass(frozen=True)
class ExecutorchBackendConfig(_Config):
    """How to make a program from Edge graphs.

    Attributes:
        sym_shape_eval_pass: None, or `ConstraintBasedSymShapeEvalPass`: the greatest sizes are
            those that the program's constraints allow. With `HintBasedSymShapeEvalPass` they would
            be those of the example inputs, which is refused.
        to_out_var_pass, do_quant_fusion_and_const_prop, run_reinplace_pass, reinplace_extra_ops:
            what they do is always done here as far as there are kernels: their values change
            nothing.
        enable_non_cpu_memory_planning: there is no memory of devices, so it changes nothing.
        external_mutable_weights: False; True is refused.
    """

    sym_shape_eval_pass: Any = None
    to_out_var_pass: Any = None
    do_quant_fusion_and_const_prop: bool = False
    run_reinplace_pass: bool = False
    reinplace_extra_ops: Sequence[Any] | None = None
    enable_non_cpu_memory_planning: bool = True
    external_mutable_weights: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        shapes = self.sym_shape_eval_pass
        for one in shapes.values() if isinstance(shapes, dict) else [shapes]:
            if isinstance(one, HintBasedSymShapeEvalPass):
                raise ExportError(
                    "sym_shape_eval_pass=HintBasedSymShapeEvalPass(): the greatest sizes are those "
                    "that the program's constraints allow; give the dimensions the bounds that you "
                    "want, with torch.export.Dim(name, max=…)",
                    code=Code.NOT_SUPPORTED,
                )
        if self.external_mutable_weights:
            raise ExportError(
                "external_mutable_weights=True: weights that are written are part of the program; "
                "leave it out",
                code=Code.NOT_SUPPORTED,
            )


class ConstraintBasedSymShapeEvalPass(PassBase):
    """Says that the greatest sizes are those that the program's constraints allow, as always."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Leave the graph as it is: tensor specs have these sizes when they are made."""
        return PassResult(graph_module, False)


class HintBasedSymShapeEvalPass(PassBase):
    """Says that the greatest sizes are those of the example inputs; see the configuration."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Leave the graph as it is."""
        return PassResult(graph_module, False)
