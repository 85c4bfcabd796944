"""Views in one spelling: every call that only splits and joins dimensions becomes a reshape."""

from __future__ import annotations

from typing import cast

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, alike, plain, traced_shape

aten = torch.ops.aten
_RESHAPES = (
    aten.unsqueeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.alias_copy.default,
)


def simplify_views(r: Rewriter) -> None:
    """Make such calls reshapes, merge reshapes in a row, and drop those that change nothing."""
    for node in list(r.graph.nodes):
        if node.op != "call_function" or not node.all_input_nodes:
            continue
        source = node.all_input_nodes[0]
        if node.target is aten.full_like.default:
            _take_out(r, node)
        if node.target in _RESHAPES or _only_moves_ones(node):
            node.target = aten.view_copy.default
            node.args, node.kwargs = (source, plain(traced_shape(node))), {}
        if node.target is source.target is aten.view_copy.default and len(source.users) == 1:
            source = cast("Node", source.args[0])
            node.args = (source, plain(traced_shape(node)))
        is_same = node.target in (aten.view_copy.default, aten.expand_copy.default)
        if is_same and alike(traced_shape(node), traced_shape(source)):
            r.replace(node, source)
    r.clean()


def _take_out(r: Rewriter, node: Node) -> None:
    """Replace `full_like` by a constant, so that the tensor whose sizes it has loses a user."""
    number = r.number(node)
    if number is not None and node.meta["val"].dtype == torch.float32:
        one = r.constant(number, torch.tensor(number))
        r.replace(node, r.expand(node, one, traced_shape(node)))


def _only_moves_ones(node: Node) -> bool:
    """Whether a permutation keeps the order of all dimensions of more than one element."""
    if node.target is not aten.permute_copy.default:
        return False
    shape, dims = traced_shape(node.args[0]), cast("list[int]", node.args[1])
    moved = [d % len(shape) for d in dims if not alike(shape[d : d + 1], [1])]
    return moved == sorted(moved)
