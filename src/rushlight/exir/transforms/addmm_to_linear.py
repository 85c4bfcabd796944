"""Replace matrix products with a transposed weight by linear layers."""

from __future__ import annotations

from typing import Any

import torch.ao.quantization.fx._decomposed  # noqa: F401  (its operators)
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.edge.operators import ops
from rushlight.exir.transforms.layout.orders import PERMUTE, VIEW, order_of
from rushlight.exir.transforms.refresh import call_like, refresh
from rushlight.ir.bounds import Bounds
from rushlight.ir.rewrite import remove_dead, replace

_aten = ops.edge.aten
_LINEAR = _aten.linear.default
_DEQUANTIZE = ops.edge.quantized_decomposed.dequantize_per_tensor.tensor


def get_shape(input_node: Node) -> list[int]:
    """The sizes of a node's tensor: of sizes that vary the greatest, or what was traced if one of
    them has no bound."""
    sizes = input_node.meta["val"].shape
    greatest = [_greatest(size) for size in sizes]
    if None not in greatest:
        return greatest  # type: ignore[return-value]
    return [size if isinstance(size, int) else int(size.node.hint) for size in sizes]


def _greatest(size: Any) -> int | None:
    if isinstance(size, int):
        return size
    return Bounds(dict(size.node.shape_env.var_to_range)).interval(size)[1]


def get_dqlinear_input(node: Node) -> Node | None:
    """The call that dequantises with a scale of its own what views lead to a node, if one does."""
    while node.target == VIEW:
        node = node.args[0]  # type: ignore[assignment]
    return node if node.target == _DEQUANTIZE else None


def replace_addmm_mm_with_linear(graph: Graph) -> Graph:
    """Replace `mm(x, t(weight))` and `addmm(bias, x, t(weight))` by `linear(x, weight, bias)`."""
    for node in list(graph.nodes):
        arguments = _of_linear(node)
        if arguments is not None:
            replace(node, call_like(node, _LINEAR, arguments))
    remove_dead(graph)
    return graph


def _of_linear(node: Node) -> tuple[Any, ...] | None:
    """The arguments of the linear layer that a product is; None if it is none."""
    given: Any = node.args
    if node.target == _aten.mm.default:
        x, weight, *bias = given
    elif node.target == _aten.addmm.default and not node.kwargs:  # beta and alpha are 1
        *bias, x, weight = given
    else:
        return None
    is_transposed = weight.target == _aten.t_copy.default or (
        weight.target == PERMUTE and order_of(weight) == [1, 0]
    )
    if not is_transposed or any(one.meta["val"].dim() != 1 for one in bias):
        return None
    return (x, weight.args[0], *bias)


def replace_linear_view_copy_input_output(graph: Graph) -> Graph:
    """Remove the views around linear layers, which take tensors with any number of dimensions.

    Those before a layer are removed behind a call that dequantises, those behind it where the
    layer has the same sizes without them.
    """
    for node in graph.find_nodes(op="call_function", target=_LINEAR):
        source: Any = node.args[0]
        start = get_dqlinear_input(source)
        if start is None or start is source or len(source.args[0].users) != 1:
            start = source
        user = next(iter(node.users), None)
        is_viewed = len(node.users) == 1 and user is not None and user.target == VIEW
        wide = [*get_shape(start)[:-1], node.meta["val"].shape[-1]]
        told = get_shape(user) if user is not None and is_viewed else get_shape(node)
        if wide != told or (start is source and not is_viewed):
            continue
        made = call_like(node, _LINEAR, (start, *node.args[1:]))
        replace(user if user is not None and is_viewed else node, made)
    remove_dead(graph)
    return graph


def apply_addmm_mm_to_linear_transform(graph: Graph) -> Graph:
    """Both of the above, in place."""
    return replace_linear_view_copy_input_output(replace_addmm_mm_with_linear(graph))


class AddmmToLinearTransform(ExportPass):
    """Writes linear layers for products with transposed weights, and without views around them."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        before = [node.target for node in graph_module.graph.nodes]
        apply_addmm_mm_to_linear_transform(graph_module.graph)
        modified = before != [node.target for node in graph_module.graph.nodes]
        return PassResult(refresh(graph_module), modified)
