"""Passes that put numbers in place of the symbolic sizes of specs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult
from torch.utils import _pytree as pytree

from rushlight.exir.dim_orders import stride_from_dim_order
from rushlight.exir.graph_passes.base import graphs_in
from rushlight.exir.graph_passes.spec_prop import SpecPropPass
from rushlight.exir.graph_passes.upper_bounds import upper_bound_shape_inference_table
from rushlight.exir.specs import TensorSpec
from rushlight.exir.symbols import eval_expr, eval_upper_bound
from rushlight.ir.rewrite import example


class ConstraintBasedSymShapeEvalPass(PassBase):
    """Gives specs the greatest sizes that the program's constraints allow."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the specs.

        Raises:
            ExportError: a size depends on data, and has no bound.
        """
        return _evaluated(graph_module, eval_upper_bound)


class HintBasedSymShapeEvalPass(PassBase):
    """Gives specs the sizes of the example inputs; those that depend on data, their bounds.

    The bounds are those of `upper_bound_shape_inference_table`, or the constraints' own.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the specs.

        Raises:
            ExportError: a size depends on data, and has no bound.
        """
        for module in graphs_in(graph_module):
            for node in module.graph.nodes:
                spec = node.meta.get("spec")
                rule = upper_bound_shape_inference_table.get(node.target)
                if isinstance(spec, TensorSpec) and rule is not None:
                    _bound(spec, rule(*example((node.args, node.kwargs))))
        return _evaluated(graph_module, _example_or_bound)


def _bound(spec: TensorSpec, sizes: Sequence[int | None]) -> None:
    """Give a spec whose sizes depend on data their bounds."""
    bounds = [size for size in sizes if size is not None]
    if len(bounds) == len(sizes) and any(eval_expr(size) is None for size in spec.shape):
        spec.shape = bounds
        spec.stride = tuple(stride_from_dim_order(bounds, spec.dim_order))


def _example_or_bound(size: Any) -> int:
    example = eval_expr(size)
    return eval_upper_bound(size) if example is None else example


def _evaluated(graph_module: GraphModule, number: Callable[[Any], int]) -> PassResult:
    for module in graphs_in(graph_module):
        for node in module.graph.nodes:
            for spec in pytree.tree_leaves(node.meta.get("spec")):
                if isinstance(spec, TensorSpec):
                    spec.shape = [number(size) for size in spec.shape]
                    spec.stride = tuple(number(stride) for stride in spec.stride)
    return PassResult(graph_module, True)


class DynamicMemoryPlanningMode(IntEnum):
    """How tensors of varying sizes are planned: for their bounds, which is what is done here."""

    UPPER_BOUND = 0
    SYMBOLIC = 1


def propagate_dynamic_shape(
    dynamic_memory_planning_mode: DynamicMemoryPlanningMode = DynamicMemoryPlanningMode.UPPER_BOUND,
) -> list[PassBase]:
    """The passes that write the specs of nodes, with numbers for sizes."""
    return [SpecPropPass(), HintBasedSymShapeEvalPass()]
