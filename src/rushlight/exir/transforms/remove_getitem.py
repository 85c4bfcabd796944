"""Replace maxima with indices, where nothing uses the indices, by maxima alone."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.edge.operators import ops
from rushlight.exir.transforms.refresh import call_like, refresh
from rushlight.ir.rewrite import replace

_aten = ops.edge.aten
_ALONE = {
    _aten.max_pool2d_with_indices.default: _aten.max_pool2d.default,
    _aten.max.dim: _aten.amax.default,
}


class RemoveGetItemPass(ExportPass):
    """Writes `max_pool2d` for `max_pool2d_with_indices`, and `amax` for `max.dim`.

    A call whose indices are used stays.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.target not in _ALONE or not _is_values_alone(node):
                continue
            alone = call_like(node, _ALONE[node.target], _arguments(node), dict(node.kwargs))
            for user in list(node.users):
                replace(user, alone)
            modified = True
        return PassResult(refresh(graph_module) if modified else graph_module, modified)


def _is_values_alone(node: Node) -> bool:
    return all(user.target is operator.getitem and user.args[1] == 0 for user in node.users)


def _arguments(node: Node) -> tuple[Any, ...]:
    if node.target != _aten.max.dim:
        return node.args
    value, dim, *rest = node.args
    return (value, [dim], *rest)
