"""The pattern of a product and the addition of a residual, which becomes part of its epilogue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, alike, only_user, traced_shape
from rushlight.backends.cpu.integers import calls
from rushlight.schema.cpu_engine import QuantizedBinaryKind

aten = torch.ops.aten


class _Addition(NamedTuple):
    """A product or convolution, the residual that is added to its result, and the parameters."""

    product: Node
    residual: Node
    pair: calls.Pair


def fuse_residuals(r: Rewriter) -> None:
    """Let products and convolutions add a residual to results that only the addition uses.

    If both operands are such results, the product that is computed last adds the other one.
    """
    for node in list(r.graph.find_nodes(op="call_function", target=calls.binary)):
        additions = _additions(node)
        if additions:
            _fuse(r, node, max(additions, key=lambda one: one.product))
    r.clean()


def _additions(node: Node) -> list[_Addition]:
    """The ways in which an operand of a sum or difference may compute it."""
    args: Any = node.args
    one, other, pair = args
    ways = [(one, other, pair)]
    if pair.kind is QuantizedBinaryKind.ADD:
        ways.append((other, one, replace(pair, a=pair.b, b=pair.a)))
    elif pair.kind is QuantizedBinaryKind.MULTIPLY:
        return []
    additions = []
    for result, residual, ordered in ways:
        product = _product_of(result, node)
        is_whole = alike(traced_shape(result), traced_shape(node)) and alike(
            traced_shape(residual), traced_shape(node)
        )
        if product is not None and is_whole and residual is not result:
            additions.append(_Addition(product, residual, ordered))
    return additions


def _product_of(result: Node, user: Node) -> Node | None:
    """The product or dense convolution that computes a value, if `user` is its only user and it
    has no residual yet; else None."""
    while result.target is aten.view_copy.default and _is_line(result):
        if only_user(result) is not user:
            return None
        user, result = result, result.all_input_nodes[0]
    if only_user(result) is not user or "residual" in result.kwargs:
        return None
    args: Any = result.args
    if result.target is calls.product:
        return result
    if result.target is not calls.convolution:
        return None
    weights, groups = args[2].weights, args[5]
    is_depthwise = groups > 1 and groups == len(weights) and weights.shape[1] == 1
    return None if is_depthwise else result


def _is_line(view: Node) -> bool:
    """Whether a view drops the height of an image of one row."""
    image = traced_shape(view.args[0])
    return len(image) == 4 and image[2] == 1 and alike(traced_shape(view), [*image[:2], image[3]])


def _fuse(r: Rewriter, node: Node, addition: _Addition) -> None:
    product, residual, pair = addition
    shape = traced_shape(product)
    is_line = not alike(shape, traced_shape(node))
    target: Any = product.target
    new = r.call(
        node,
        target,
        *product.args,
        residual=r.view(node, residual, shape) if is_line else residual,
        pair=pair,
        shape=shape,
        dtype=torch.uint8,
        replaced=[product],
    )
    r.replace(node, r.view(node, new, traced_shape(node)) if is_line else new)
