"""Replace views that add or remove dimensions of size 1 by squeezes and unsqueezes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.edge.operators import ops
from rushlight.exir.transforms.layout.orders import VIEW, extra_one
from rushlight.exir.transforms.refresh import call_like, refresh, sizes_of
from rushlight.ir.rewrite import replace

aten = ops.edge.aten


class ViewCopyToSqueezeUnsqueezePass(ExportPass):
    """Writes `squeeze_copy.dims` for views that remove dimensions of size 1, and
    `unsqueeze_copy` for those that add one."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        modified = False
        for node in graph_module.graph.find_nodes(op="call_function", target=VIEW):
            source: Any = node.args[0]
            into, out = sizes_of(source.meta["val"]), sizes_of(node.meta["val"])
            removed, added = self.find_squeeze_dims(into, out), self.find_unsqueeze_dim(into, out)
            if removed:
                _put(node, aten.squeeze_copy.dims, removed)
            elif added is not None:
                _put(node, aten.unsqueeze_copy.default, added)
            modified |= bool(removed) or added is not None
        return PassResult(refresh(graph_module) if modified else graph_module, modified)

    def find_squeeze_dims(
        self, input_shape: Sequence[Any], view_shape: Sequence[Any]
    ) -> list[int] | None:
        """The dimensions of size 1 that a view removes; None if it does more, or nothing."""
        if len(input_shape) <= len(view_shape):
            return None
        removed: list[int] = []
        for dim, size in enumerate(input_shape):
            at = dim - len(removed)
            if at < len(view_shape) and view_shape[at] == size:
                continue
            if size != 1:
                return None
            removed.append(dim)
        return removed if len(input_shape) - len(removed) == len(view_shape) else None

    def find_unsqueeze_dim(
        self, input_shape: Sequence[Any], view_shape: Sequence[Any]
    ) -> int | None:
        """Where a view adds a dimension of size 1; None if it does more, or nothing."""
        return extra_one(view_shape, input_shape)


def _put(node: Node, target: Any, argument: Any) -> None:
    replace(node, call_like(node, target, (node.args[0], argument)))
