"""Remove the permutes around calls that work in any order of dimensions.

A region grows from the user of a permute: all calls that are reached over their users and inputs,
up to permutes with the same order that lead into it, and permutes that undo the order of what they
take. Each value of the region has an order: for each of its dimensions, the dimension that it is
without the permutes. Views that add or remove a dimension of size 1 change the order's length.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.edge.operators import ops
from rushlight.exir.transforms.arguments import get_arg, set_arg
from rushlight.exir.transforms.layout.orders import (
    PERMUTE,
    VIEW,
    VIEWS,
    extra_one,
    inverse,
    order_of,
)
from rushlight.exir.transforms.refresh import call_like, outdate, refresh, sizes_of

_aten, _q = ops.edge.aten, ops.edge.quantized_decomposed
_REDUCTIONS = (_aten.mean.dim, _aten.sum.dim_IntList)
_ALONG = (_aten.cat.default, _aten.slice_copy.Tensor)
_UNSQUEEZE, _SQUEEZE = _aten.unsqueeze_copy.default, _aten.squeeze_copy.dim
_ELEMENTWISE = (
    *(_aten.add.Tensor, _aten.mul.Tensor, _aten.sub.Tensor),
    *(_aten.hardtanh.default, _aten.clamp.default),
    *(_q.quantize_per_tensor.default, _q.dequantize_per_tensor.default),
)
_CONSTANTS = ("p_", "b_", "c_")  # torch.export's names of parameters, buffers and constants
Order = list[int]


@dataclass
class _Region:
    """The calls of a region with the orders of their inputs and results, and its edges.

    Attributes:
        before, after: the order of each call's inputs, and of its result.
        moved: where a view adds or removes a dimension: before the view it is `removed`, behind it
            `added`; without the permutes, it is the third number.
        entries, constants, exits: edges from permutes, from constants, and to permutes.
    """

    before: dict[Node, Order] = field(default_factory=dict)
    after: dict[Node, Order] = field(default_factory=dict)
    moved: dict[Node, int] = field(default_factory=dict)
    entries: list[tuple[Node, Node]] = field(default_factory=list)
    constants: list[tuple[Node, Node]] = field(default_factory=list)
    exits: list[tuple[Node, Node]] = field(default_factory=list)


class RemovePermutesAroundElementwiseOps(ExportPass):
    """Removes permutes before and behind regions of elementwise calls, concatenations, slices,
    reductions that keep dimensions, and views that add or remove a dimension of size 1.

    Args:
        extra_permutable_ops: further operators that work in any order of dimensions.
    """

    def __init__(self, extra_permutable_ops: Collection[Any] | None = None) -> None:
        self._elementwise = {*_ELEMENTWISE, *(extra_permutable_ops or ())}

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        modified = False
        for permute in graph_module.graph.find_nodes(op="call_function", target=PERMUTE):
            for user in list(permute.users):
                region = self._grown(user, order_of(permute))
                if region is not None and permute in user.all_input_nodes:
                    _rewrite(region)
                    refresh(graph_module)
                    modified = True
        return PassResult(graph_module, modified)

    def _grown(self, start: Node, order: Order) -> _Region | None:
        """The region around a call whose input has an order; None if it has another end."""
        region = _Region()
        pending: list[tuple[Node, Order, bool]] = [(start, order, True)]
        while pending:
            node, order, is_input = pending.pop()
            if node in region.before:
                if order != (region.before if is_input else region.after)[node]:
                    return None
                continue
            if not self._add(region, node, order, is_input):
                return None
            more = _reached(region, node)
            if more is None:
                return None
            pending += more
        return region if region.exits else None

    def _add(self, region: _Region, node: Node, order: Order, is_input: bool) -> bool:
        """Take a call into a region; False if it does not work in any order."""
        if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
            return False
        before = after = order
        place = _view_place(node)
        if place is not None:
            is_longer = node.meta["val"].dim() > node.all_input_nodes[0].meta["val"].dim()
            if is_input == is_longer:  # from the shorter order to the longer one
                region.moved[node] = place
                other = [d + 1 if d >= place else d for d in order]
                other.insert(place, place)
            else:
                gone = region.moved[node] = order[place] if place < len(order) else -1
                other = [d - 1 if d > gone else d for d in order if d != gone]
            before, after = (order, other) if is_input else (other, order)
        elif not self._keeps_order(node):
            return False
        region.before[node], region.after[node] = before, after
        return len(node.meta["val"].shape) == len(after)

    def _keeps_order(self, node: Node) -> bool:
        target: Any = node.target
        if target in _REDUCTIONS:
            return bool(get_arg(node, "keepdim"))
        if target in _ALONG or target in self._elementwise:
            return True
        return torch.Tag.pointwise in getattr(target, "tags", ())


def _reached(region: _Region, node: Node) -> list[tuple[Node, Order, bool]] | None:
    """What a region reaches over one of its calls; None if it ends there in something else."""
    reached: list[tuple[Node, Order, bool]] = []
    before, after = region.before[node], region.after[node]
    for user in node.users:
        if user.target == PERMUTE and [after[d] for d in order_of(user)] == sorted(after):
            region.exits.append((node, user))
        else:
            reached.append((user, after, True))
    for source in node.all_input_nodes:
        value = source.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return None
        if source.target == PERMUTE and order_of(source) == before:
            region.entries.append((source, node))
        elif _is_constant(source) and value.dim() <= len(before):
            region.constants.append((source, node))
        else:
            reached.append((source, before, False))
    return reached


def _is_constant(node: Node) -> bool:
    is_held = node.op == "placeholder" and str(node.target).startswith(_CONSTANTS)
    return node.op == "get_attr" or is_held or node.target == _aten.full.default


def _view_place(node: Node) -> int | None:
    """Where a view adds or removes a dimension of size 1, in the longer shape; None if neither."""
    if node.target not in (*VIEWS, _UNSQUEEZE, _SQUEEZE) or len(node.all_input_nodes) != 1:
        return None
    into, out = (sizes_of(n.meta["val"]) for n in (node.all_input_nodes[0], node))
    if node.target in (_UNSQUEEZE, _SQUEEZE) and len(into) != len(out):
        dim: Any = node.args[1]
        return int(dim) % max(len(into), len(out))
    added = extra_one(out, into)
    return extra_one(into, out) if added is None else added


def _rewrite(region: _Region) -> None:
    for node in region.before:
        _reorder(region, node)
    for permute, user in region.entries:
        user.replace_input_with(permute, permute.args[0])  # type: ignore[arg-type]
    for constant, user in region.constants:
        user.replace_input_with(constant, _unpermuted(constant, region.before[user], user))
    for node, permute in region.exits:
        permute.replace_all_uses_with(node, propagate_meta=False)
    for node in region.before:
        outdate(node)


def _reorder(region: _Region, node: Node) -> None:
    """Let a call work on dimensions in the order that they have without the permutes."""
    order = region.before[node]
    if node.target in _ALONG:
        set_arg(node, "dim", order[get_arg(node, "dim")])
    elif node.target in _REDUCTIONS and (dims := get_arg(node, "dim")):
        set_arg(node, "dim", [order[d] for d in dims])
    elif node in region.moved and node.target not in VIEWS:
        node.update_arg(1, region.moved[node])
    elif node in region.moved:
        source = node.all_input_nodes[0]
        sizes = [source.meta["val"].shape[d] for d in inverse(order)]
        if len(region.after[node]) > len(order):
            sizes.insert(region.moved[node], 1)
        else:
            del sizes[region.moved[node]]
        node.update_arg(1, sizes)


def _unpermuted(constant: Node, order: Order, user: Node) -> Node:
    """A constant with its dimensions in the order that `user` will have them in."""
    own = list(constant.meta["val"].shape)
    sizes = [1] * (len(order) - len(own)) + own
    back = inverse(order)
    larger = [d for d in back if sizes[d] != 1]
    if not larger:
        return constant
    if larger == sorted(larger):
        return call_like(user, VIEW, (constant, [sizes[d] for d in back]))
    if len(own) < len(order):
        constant = call_like(user, VIEW, (constant, sizes))
    return call_like(user, PERMUTE, (constant, back))
