"""Passes that make copies of views share their base's memory."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from rushlight.errors import Code, ExportError
from rushlight.exir.graph_passes.base import GraphPass, graphs_in
from rushlight.exir.specs import ViewSpec
from rushlight.ir.alloc import view

_view_copy = torch.ops.aten.view_copy.default


def _is_view_copy(node: Any) -> bool:
    return isinstance(node, Node) and node.op == "call_function" and node.target == _view_copy


def _is_inner(node: Node) -> bool:
    """Whether a node is a copy of a view that the graph does not return."""
    return _is_view_copy(node) and all(user.op != "output" for user in node.users)


class NormalizeViewCopyBasePass(GraphPass):
    """Makes a view of a view one of the tensor that both are views of."""

    in_place = True

    def change(self, graph: Graph) -> bool:
        """Change the calls."""
        changed = False
        for node in graph.nodes:
            if _is_view_copy(node) and _is_view_copy(node.args[0]):
                node.args = (node.args[0].args[0], *node.args[1:])
                changed = True
        return changed

    def ensures(self, graph_module: GraphModule) -> None:
        """Check that no base of a view is a view.

        Raises:
            ExportError: one is.
        """
        for module in graphs_in(graph_module):
            for node in module.graph.nodes:
                if _is_view_copy(node) and _is_view_copy(node.args[0]):
                    raise ExportError(
                        f"{node.name} is a view of the view {node.args[0].name}: run "
                        f"NormalizeViewCopyBasePass",
                        code=Code.INVALID_STATE,
                    )


class ReplaceViewCopyWithViewPass(GraphPass):
    """Makes copies of views that the graph does not return `executorch.exir.memory.view`.

    Nodes need specs; that of a view shares its base's place and lifetime.
    """

    in_place = True

    def requires(self, graph_module: GraphModule) -> None:
        """Check that no base of a view is a view; see `NormalizeViewCopyBasePass.ensures`."""
        NormalizeViewCopyBasePass().ensures(graph_module)

    def change(self, graph: Graph) -> bool:
        """Change the calls."""
        changed = False
        for node in graph.nodes:
            if _is_inner(node):
                base: Any = node.args[0]
                node.target = view
                node.meta["spec"] = ViewSpec(base.meta["spec"], node.meta["val"].shape)
                changed = True
        return changed

    def ensures(self, graph_module: GraphModule) -> None:
        """Check that no copy is left.

        Raises:
            ExportError: one is.
        """
        for module in graphs_in(graph_module):
            for node in module.graph.nodes:
                if _is_inner(node):
                    raise ExportError(f"{node.name} still copies a view", code=Code.INVALID_STATE)
