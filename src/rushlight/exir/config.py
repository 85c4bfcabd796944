"""`ExecutorchBackendConfig` with all options that ExecuTorch has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight import edge
from rushlight.errors import Code, ExportError
from rushlight.exir.graph_passes.shapes import HintBasedSymShapeEvalPass
from rushlight.exir.planning.memory_pass import MemoryPlanningPass

_Config = edge.ExecutorchBackendConfig


@dataclass(frozen=True)
class ExecutorchBackendConfig(_Config):
    """How to make a program from Edge graphs.

    Attributes:
        memory_planning_pass: a `MemoryPlanningPass` of ExecuTorch's or of ours, one for all methods
            or one per method name.
        sym_shape_eval_pass: None, or `ConstraintBasedSymShapeEvalPass`: the greatest sizes are
            those that the program's constraints allow. With `HintBasedSymShapeEvalPass` they would
            be those of the example inputs, which is refused.
        to_out_var_pass, run_reinplace_pass, reinplace_extra_ops: what they do is always done here
            as far as there are kernels: their values change nothing.
        do_quant_fusion_and_const_prop: let operators work on quantised values, and compute what
            depends on constants alone: `quant_fusion_and_const_prop_pass`.
        enable_non_cpu_memory_planning: there is no memory of devices, so it changes nothing.
        external_mutable_weights: False; True is refused.
    """

    memory_planning_pass: Any = field(default_factory=MemoryPlanningPass)
    sym_shape_eval_pass: Any = None
    to_out_var_pass: Any = None
    do_quant_fusion_and_const_prop: bool = False
    run_reinplace_pass: bool = False
    reinplace_extra_ops: Sequence[Any] | None = None
    enable_non_cpu_memory_planning: bool = True
    external_mutable_weights: bool = False

    def __post_init__(self) -> None:
        planning = self.memory_planning_pass
        given = planning.values() if isinstance(planning, dict) else [planning]
        if not all(isinstance(one, MemoryPlanningPass) for one in given):
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

    def planning_of(self, method: str) -> edge.MemoryPlanningPass:
        """The options of our planner for one method.

        Raises:
            ExportError: its pass has an algorithm or methods of the user's.
        """
        planning = self.pass_of(method)
        if not isinstance(planning, MemoryPlanningPass):
            return planning
        if not planning.is_plain:
            raise ExportError(
                f"{type(planning).__name__} plans graphs of ExecuTorch's operators: call "
                f"to_executorch of what rushlight.exir.manager.to_edge gives",
                code=Code.NOT_SUPPORTED,
            )
        return planning.options()

    def pass_of(self, method: str) -> MemoryPlanningPass | edge.MemoryPlanningPass:
        """The planning pass of one method."""
        planning = self.memory_planning_pass
        if isinstance(planning, dict):
            planning = planning.get(method) or planning.get("") or MemoryPlanningPass()
        return planning  # type: ignore[no-any-return]
