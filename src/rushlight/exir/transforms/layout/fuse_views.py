"""Fuse views across elementwise calls: the first view of a chain gives the last one's sizes."""

from __future__ import annotations

from typing import Any, ClassVar

import torch.ao.quantization.fx._decomposed  # noqa: F401  (its operators)
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.edge.operators import ops
from rushlight.exir.transforms.layout.orders import VIEW
from rushlight.exir.transforms.refresh import outdate, refresh
from rushlight.ir.custom_ops import dim_order  # noqa: F401  (registers what follows)
from rushlight.ir.rewrite import replace

_aten, _q, _layout = ops.edge.aten, ops.edge.quantized_decomposed, ops.edge.dim_order_ops
_COPIES = (_layout._clone_dim_order.default, _layout._to_dim_order_copy.default)


class FuseViewCopyTransform(ExportPass):
    """Removes all views but the first of a chain of views and elementwise calls.

    Each value of the chain has one user, and each call one input; the first view gives the sizes of
    the last.

    Attributes:
        VIEW_OP: the operator of views.
        UNARY_ELEMENTWISE_OPS: the other operators of chains.
    """

    VIEW_OP: Any = VIEW
    UNARY_ELEMENTWISE_OPS: ClassVar[list[Any]] = [
        *(getattr(_aten, name).default for name in "alias_copy clone _to_copy".split()),
        *_COPIES,
        _q.quantize_per_tensor.default,
        _q.dequantize_per_tensor.default,
        *(
            getattr(_aten, name).default
            for name in (
                "abs clamp ceil floor neg relu round sigmoid silu sqrt tanh sign reciprocal gelu "
                "rsqrt exp log"
            ).split()
        ),
    ]

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        modified = False
        for node in graph_module.graph.find_nodes(op="call_function", target=self.VIEW_OP):
            chain = self._chain(node)
            views = [one for one in chain if one.target == self.VIEW_OP]
            if not node.users or not views or not _is_known_before(views[-1].args[1], node):
                continue
            sizes: Any = views[-1].args[1]
            chain = chain[: chain.index(views[-1]) + 1]
            node.update_arg(1, sizes)
            for one in (node, *chain):
                outdate(one)
                if one.target in _COPIES and "dim_order" in one.kwargs:
                    one.update_kwarg("dim_order", list(range(len(sizes))))
            for view in views:
                source: Any = view.args[0]
                replace(view, source)
            refresh(graph_module)
            modified = True
        return PassResult(graph_module, modified)

    def _chain(self, view: Node) -> list[Node]:
        """The calls after a view that have one user each, and take nothing else from the graph."""
        chain: list[Node] = []
        last = view
        while len(last.users) == 1:
            (last,) = last.users
            if last.target != self.VIEW_OP and not self._is_elementwise(last):
                break
            chain.append(last)
        return chain

    def _is_elementwise(self, node: Node) -> bool:
        if node.target not in self.UNARY_ELEMENTWISE_OPS or len(node.all_input_nodes) != 1:
            return False
        order: Any = node.kwargs.get("dim_order")
        return order is None or list(order) == sorted(order)


def _is_known_before(sizes: Any, node: Node) -> bool:
    """Whether sizes that vary, if there are any, are computed before a node."""
    order = {one: place for place, one in enumerate(node.graph.nodes)}
    return all(order[size] < order[node] for size in sizes if isinstance(size, Node))
