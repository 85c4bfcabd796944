"""Products of the same rows that become one: those of queries, keys and values.

The rows are read once, and threads are woken once. Results that an elementwise operator computes
with, such as the gate of a feed-forward layer, stay apart: it becomes the epilogue of one of them.
What adapters add to results that become one is joined, too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, only_user, traced_shape
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.integers.facts import Weights
from rushlight.ir.custom_ops.adapter import adapter
from rushlight.ir.mapped_weights import Filled

aten = torch.ops.aten
_PRODUCTS = (calls.dynamic_product, calls.weight_only_product)


def join_products(r: Rewriter) -> None:
    """Let one call compute what several products of the same rows with alike weights compute."""
    alike: dict[Any, list[Node]] = {}
    for node in r.graph.nodes:
        added = _adapter_of(node)
        if node.target in _PRODUCTS and (added is not None or _is_only_moved(node)):
            rows, _, weights, _ = node.args
            form = weights.group_size, weights.low, weights.high, weights.data.dim()
            inputs = None if added is None else (added.args[1], added.args[2], added.args[5])
            alike.setdefault((node.target, rows, *form, inputs), []).append(node)
    for nodes in alike.values():
        if len(nodes) > 1:
            _join(r, nodes)
    r.clean()


def _is_only_moved(node: Node) -> bool:
    """Whether a result is only taken apart by those that use it, as heads are."""
    return all(user.target is aten.view_copy.default for user in node.users)


def _adapter_of(node: Node) -> Node | None:
    """What alone uses a result, if it is what an adapter adds."""
    user = only_user(node)
    return user if user is not None and user.target is adapter and user.args[0] is node else None


def _join(r: Rewriter, nodes: list[Node]) -> None:
    first, *others = nodes
    parts: list[Weights] = [node.args[2] for node in nodes]  # type: ignore[misc]
    rows = sum(len(part.data) for part in parts)
    made = Filled([rows, *parts[0].data.shape[1:]], parts[0].data.dtype)
    for part in parts:
        made.add(part.data)
    data = made.tensor
    scales = torch.cat([part.scales for part in parts])
    constant = r.constant((*((part.node, part.columns) for part in parts), "joined"), data)
    weights = Weights(constant, 0, data, scales, parts[0].low, parts[0].high)
    shape = traced_shape(first)
    joined = r.call(
        first,
        first.target,
        *(first.args[0], constant, weights, _bias(r, nodes)),
        shape=[*shape[:-1], len(data)],
        replaced=others,
    )
    added = [one for one in map(_adapter_of, nodes) if one is not None]
    if added:
        joined = _join_adapters(r, joined, added)
    start = 0
    results = added or nodes
    for node in results:
        shape = traced_shape(node)
        place = len(shape) - 1, start, start + shape[-1]
        r.replace(node, r.call(results[0], aten.slice_copy.Tensor, joined, *place, shape=shape))
        start += shape[-1]


def _join_adapters(r: Rewriter, joined: Node, added: list[Node]) -> Node:
    """What adapters add to joined results."""
    first, *others = added
    _, x, sequences, _, _, rank = first.args
    lists: Any = [one.args[3:5] for one in added]
    sites, widths = ([n for part in parts for n in part] for parts in zip(*lists, strict=True))
    return r.call(
        first,
        adapter,
        *(joined, x, sequences, sites, widths, rank),
        shape=traced_shape(joined),
        replaced=others,
    )


def _bias(r: Rewriter, nodes: list[Node]) -> Node | None:
    """The biases of all, one after the other; None if no product has one."""
    biases = [r.data(node.args[3]) for node in nodes]
    if all(bias is None for bias in biases):
        return None
    whole = [
        torch.zeros(traced_shape(node)[-1]) if bias is None else bias.float()
        for node, bias in zip(nodes, biases, strict=True)
    ]
    return r.constant((*nodes, "bias"), torch.cat(whole))
