"""Products of the same rows that become one: those of queries, keys and values.

The rows are read once, and threads are woken once. Results that an elementwise operator computes
with, such as the gate of a feed-forward layer, stay apart: it becomes the epilogue of one of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, traced_shape
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.integers.facts import Weights
from rushlight.ir.mapped_weights import to_file

aten = torch.ops.aten
_PRODUCTS = (calls.dynamic_product, calls.weight_only_product)


def join_products(r: Rewriter) -> None:
    """Let one call compute what several products of the same rows with alike weights compute."""
    alike: dict[Any, list[Node]] = {}
    for node in r.graph.nodes:
        if node.target in _PRODUCTS and _is_only_moved(node):
            rows, _, weights, _ = node.args
            form = weights.group_size, weights.low, weights.high, weights.data.dim()
            alike.setdefault((node.target, rows, *form), []).append(node)
    for nodes in alike.values():
        if len(nodes) > 1:
            _join(r, nodes)
    r.clean()


def _is_only_moved(node: Node) -> bool:
    """Whether a result is only taken apart by those that use it, as heads are."""
    return all(user.target is aten.view_copy.default for user in node.users)


def _join(r: Rewriter, nodes: list[Node]) -> None:
    first, *others = nodes
    parts: list[Weights] = [node.args[2] for node in nodes]  # type: ignore[misc]
    data = to_file(torch.cat([part.data for part in parts]))
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
    start = 0
    for node in nodes:
        shape = traced_shape(node)
        place = len(shape) - 1, start, start + shape[-1]
        r.replace(node, r.call(first, aten.slice_copy.Tensor, joined, *place, shape=shape))
        start += shape[-1]


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
