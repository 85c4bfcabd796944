"""Passes that put one operator in place of another with the same meaning."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.edge.operators import LEFT_PLAIN, EdgeOpOverload, edge_operator
from rushlight.edge.passes.views_to_copies import views_to_copies
from rushlight.exir.graph_passes.base import GraphPass, graphs_in
from rushlight.ir.programs import copy_graph_module

aten = torch.ops.aten
replacements: dict[Any, OpOverload] = {
    aten.sym_size: aten.sym_size.int,
    aten.sym_stride: aten.sym_stride.int,
    aten.sym_numel: aten.sym_numel.default,
}
"""The overload that stands for each operator of sizes."""
DISALLOW_LIST = [
    aten._assert_scalar.default,
    aten._assert_async.msg,
    aten.scalar_tensor.default,
]
"""Operators that take no tensors, which the Edge dialect leaves as they are."""


class ReplaceSymSizeOpPass(PassBase):
    """Names the overload of operators of sizes."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the calls."""
        changed = False
        for module in graphs_in(graph_module):
            for node in module.graph.nodes:
                if node.op == "call_function" and node.target in replacements:
                    node.target, changed = replacements[node.target], True
        return PassResult(graph_module, changed)


class NormalizeTransposePass(GraphPass):
    """Makes `t` its copy."""

    def change(self, graph: Graph) -> bool:
        """Change the calls."""
        found = graph.find_nodes(op="call_function", target=aten.t.default)
        for node in found:
            node.target = aten.t_copy.default
        return bool(found)


class ReplaceBrokenOpsWithFunctionalOpsPass(GraphPass):
    """Makes operators that return views those that return copies."""

    def change(self, graph: Graph) -> bool:
        """Change the calls."""
        before = [node.target for node in graph.nodes]
        views_to_copies(graph)
        return before != [node.target for node in graph.nodes]


def should_lower_to_edge(op: Any) -> bool:
    """Whether an operator of torch has another spelling in the Edge dialect."""
    return isinstance(op, OpOverload) and op not in LEFT_PLAIN


def aten_to_edge(aten_op: OpOverload) -> EdgeOpOverload:
    """The Edge dialect's operator for one of torch's."""
    return edge_operator(aten_op)


class OpReplacePass(PassBase):
    """Spells operators as the Edge dialect does."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the calls of a copy of the graph."""
        result = copy_graph_module(graph_module)
        changed = False
        for module in graphs_in(result):
            for node in module.graph.nodes:
                is_spelled = isinstance(node.target, EdgeOpOverload)
                if node.op == "call_function" and should_lower_to_edge(node.target):
                    node.target = edge_operator(node.target)
                    changed = changed or not is_spelled
            module.recompile()
        return PassResult(result, changed)
