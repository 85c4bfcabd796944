"""Remove copies that change nothing."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.edge.operators import ops
from rushlight.ir.custom_ops import dim_order  # noqa: F401  (registers what follows)
from rushlight.ir.rewrite import remove_dead, replace
from rushlight.ir.spec import dim_order_of

_q = ops.edge.quantized_decomposed
_QUANTIZE = (_q.quantize_per_tensor.default, _q.quantize_per_channel.default)
_DEQUANTIZE = (_q.dequantize_per_tensor.default, _q.dequantize_per_channel.default)
_CLONE = ops.edge.aten.clone.default


class RemoveCloneOpsTransform(ExportPass):
    """Removes copies that keep the layout of what they copy.

    Args:
        preserve_input_output_copies: keep a copy of an input that the graph returns.
        eliminate_quant_dequant_pairs: where a removed copy stood between a call that dequantises
            and one that quantises with the same scale, remove these too.

    Attributes:
        clone_ops: the operators of copies.
    """

    clone_ops: ClassVar[set[Any]] = {_CLONE, ops.edge.dim_order_ops._clone_dim_order.default}

    def __init__(
        self,
        preserve_input_output_copies: bool = False,
        eliminate_quant_dequant_pairs: bool = True,
    ) -> None:
        self._keeps_outputs = preserve_input_output_copies
        self._removes_pairs = eliminate_quant_dequant_pairs

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.target not in self.clone_ops or _changes_layout(node):
                continue
            source = node.args[0]
            if self._keeps_outputs and source.op == "placeholder" and _is_returned(node):
                continue
            replace(node, source)
            if self._removes_pairs and source.target in _DEQUANTIZE:
                _remove_pairs(source)
            modified = True
        if modified:
            remove_dead(graph_module.graph)
            graph_module.recompile()
        return PassResult(graph_module, modified)


def _changes_layout(node: Node) -> bool:
    source: Any = node.args[0]
    old = source.meta.get("val")
    if node.target == _CLONE:
        wanted: Any = node.kwargs.get("memory_format")
        if wanted in (None, torch.preserve_format) or old is None:
            return False
        return not old.is_contiguous(memory_format=wanted)
    new = node.meta.get("val")
    return old is not None and new is not None and dim_order_of(old) != dim_order_of(new)


def _is_returned(node: Node) -> bool:
    return any(user.op == "output" for user in node.users)


def _remove_pairs(dequantize: Node) -> None:
    for user in list(dequantize.users):
        if user.target in _QUANTIZE and user.args[1:] == dequantize.args[1:]:
            integers: Any = dequantize.args[0]
            user.replace_all_uses_with(integers, propagate_meta=False)
