"""Transpositions that undo each other are removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from rushlight.edge import ExportPass, PassResult

aten = torch.ops.aten


class RemoveRedundantTransposes(ExportPass):
    """Removes pairs of transpositions, or of permutations, of which the second undoes the first.

    Views in place and copies (`transpose_copy`) are left alone.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        """Remove the pairs; the module is changed."""
        changed = False
        for node in graph_module.graph.nodes:
            order = _order_of(node)
            before = node.all_input_nodes[0] if order is not None else None
            first = _order_of(before) if before is not None else None
            if order is None or before is None or first is None:
                continue
            if [first[dim] for dim in order] == list(range(len(order))):
                node.replace_all_uses_with(before.all_input_nodes[0])
                changed = True
        if changed:
            graph_module.graph.eliminate_dead_code()
            graph_module.recompile()
        return PassResult(graph_module, changed)


def _order_of(node: Node) -> list[int] | None:
    """From which dimension of its input each dimension of a result comes; None for other calls."""
    find = _ORDERS.get(node.target)
    value = node.meta.get("val")
    return find(node.args, value.dim()) if find is not None and value is not None else None


def _transposed(args: Sequence[Any], dims: int) -> list[int]:
    order = list(range(dims))
    first, second = args[1:]
    order[first], order[second] = order[second], order[first]
    return order


_ORDERS: dict[Any, Callable[[Sequence[Any], int], list[int]]] = {
    aten.transpose.int: _transposed,
    aten.permute.default: lambda args, dims: [dim % dims for dim in args[1]],
}
