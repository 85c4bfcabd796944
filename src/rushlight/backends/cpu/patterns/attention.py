"""The pattern of attention: a product with kᵀ, a scale, masks, softmax, a product with v."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, alike, both, only_user, traced_shape
from rushlight.backends.cpu.operators.attention import NEVER

aten = torch.ops.aten
_PRODUCTS = (aten.bmm.default, aten.mm.default)
_VIEWS = (aten.view_copy.default, aten.alias_copy.default)
_MOST_CALLS = 12  # between the product and softmax


@dataclass(frozen=True)
class _Change:
    """A call on the path from a product of q and kᵀ to softmax.

    Attributes:
        node: the call.
        factor: the number that it multiplies scores by.
        mask: the tensor that it adds to them.
        allowed: where scores stay as they are; elsewhere they become `fill`.
        fill: a number so low that a score has no weight.
        is_negated: whether `allowed` says where scores are replaced instead.
    """

    node: Node
    factor: float = 1.0
    mask: Node | None = None
    allowed: Node | None = None
    fill: float = 0.0
    is_negated: bool = False


def fuse_attention(r: Rewriter) -> None:
    """Replace the pattern by one call, and use keys and values before they were repeated."""
    for node in list(r.graph.find_nodes(op="call_function", target=aten._softmax.default)):
        _fuse(r, node)
    sdpa = aten.scaled_dot_product_attention.default
    for node in list(r.graph.find_nodes(op="call_function", target=sdpa)):
        if len(node.args) >= 3 and all(len(traced_shape(arg)) == 4 for arg in node.args[:3]):
            key, value = _heads_once(r, node, node.args[1], node.args[2])
            node.args = (node.args[0], key, value, *node.args[3:])


def _fuse(r: Rewriter, softmax: Node) -> None:
    if softmax.args[1] not in (-1, len(traced_shape(softmax)) - 1):
        return
    weighted, is_safe = _weighted(r, softmax)
    if weighted is None:
        return
    way = _way(r, softmax.args[0], 2 if is_safe else 1, _MOST_CALLS)
    if way is None or way[0].node.target is not weighted.target:
        return
    product, *changes = way
    q, keys, v = (*product.node.all_input_nodes[:2], weighted.args[1])
    if product.node.args != (q, keys) or not isinstance(v, Node):
        return
    sizes = _heads(way, q)
    scale, mask = _scale_and_mask(r, changes, sizes)
    q, q_factor = _unscaled(r, _in_heads(r, weighted, q, sizes))
    keys, k_factor = _unscaled(r, _in_heads(r, weighted, keys, sizes))
    v = _in_heads(r, weighted, v, sizes)
    key, value = _heads_once(r, weighted, _transposed(r, weighted, keys), v)
    attention = r.call(
        weighted,
        aten.scaled_dot_product_attention.default,
        *(q, key, value, mask),
        scale=scale * q_factor * k_factor,
        enable_gqa=not alike(traced_shape(key)[1:2], traced_shape(q)[1:2]),
        shape=[*traced_shape(q)[:3], traced_shape(value)[3]],
        replaced=[change.node for change in way],
    )
    r.replace(weighted, r.view(weighted, attention, traced_shape(weighted)))


# --- around softmax -------------------------------------------------------------------------------


def _weighted(r: Rewriter, softmax: Node) -> tuple[Node | None, bool]:
    """The only user of the weights, if it is a product with v; whether fully masked rows are set
    to zero on the way."""
    node, is_safe = softmax, False
    while True:
        user = only_user(node)
        if user is None:
            return None, is_safe
        if user.target in _PRODUCTS:
            fits = user.args[0] is node and user.args[1] is not node
            return (user if fits else None), is_safe
        if user.target is aten.where.self and _is_safe(r, user, node, softmax.args[0]):
            is_safe = True
        elif user.target not in _VIEWS or not alike(
            traced_shape(user)[-2:], traced_shape(node)[-2:]
        ):
            return None, is_safe
        node = user


def _is_safe(r: Rewriter, where: Node, weights: Node, scores: Any) -> bool:
    """Whether a call sets the rows to zero in which all scores are minus infinity."""
    node, zeros, rest = where.args
    if rest is not weights or r.number(zeros) != 0:
        return False
    for target in (
        aten.logical_not.default,
        aten.any.dim,
        aten.logical_not.default,
        aten.eq.Scalar,
    ):
        if not isinstance(node, Node) or node.target is not target:
            return False
        if target is aten.any.dim and node.args[1] not in (-1, len(traced_shape(scores)) - 1):
            return False
        if target is aten.eq.Scalar and r.number(node.args[1]) != -math.inf:
            return False
        node = node.args[0]
    return node is scores


def _way(r: Rewriter, node: Any, users: int, most: int) -> list[_Change] | None:
    """The calls from a product to a value; None if one is not part of the pattern of attention.

    Args:
        r: the graph.
        node: the value.
        users: how many calls use it; each call before it has one user.
        most: how many calls there may be.
    """
    if not isinstance(node, Node) or len(node.users) != users or most == 0:
        return None
    if node.target in _PRODUCTS:
        return [_Change(node)]
    for source, change in _changes(r, node):
        way = _way(r, source, 1, most - 1)
        if way is not None:
            return [*way, change]
    return None


def _changes(r: Rewriter, node: Node) -> list[tuple[Any, _Change]]:
    """The ways to read a call as a change of scores, each with the operand that is the scores."""
    if node.target in _VIEWS:
        same = alike(traced_shape(node)[-2:], traced_shape(node.args[0])[-2:])
        return [(node.args[0], _Change(node))] if same else []
    scaled = r.factor(node)
    if scaled is not None:
        return [(scaled[0], _Change(node, factor=scaled[1]))]
    if node.target is aten.where.self:
        allowed, one, other = node.args
        ways = ((one, other, False), (other, one, True))
        fills = ((scores, r.number(fill), is_negated) for scores, fill, is_negated in ways)
        return [
            (scores, _Change(node, allowed=allowed, fill=fill, is_negated=is_negated))
            for scores, fill, is_negated in fills
            if fill is not None and fill <= NEVER and isinstance(allowed, Node)
        ]
    return [
        (scores, _Change(node, mask=mask))
        for scores, mask in both(r.operands(node, aten.add.Tensor))
        if isinstance(mask, Node) and mask is not scores and _is_float(mask)
    ]


def _is_float(node: Node) -> bool:
    return bool(node.meta["val"].dtype == torch.float32)


# --- scale and mask -------------------------------------------------------------------------------


def _scale_and_mask(
    r: Rewriter, changes: list[_Change], sizes: tuple[Any, Any]
) -> tuple[float, Node | None]:
    """All changes as one factor, and one mask that is added after the multiplication."""
    scale, mask = 1.0, None
    for change in changes:
        node = change.node
        scale *= change.factor
        if change.factor != 1 and mask is not None:
            mask = r.elementwise(node, aten.mul.Tensor, mask, _number(r, change.factor))
        if change.mask is not None:
            added = _as_scores(r, node, change.mask, sizes)
            mask = added if mask is None else r.elementwise(node, aten.add.Tensor, mask, added)
        if change.allowed is not None:
            mask = _filled(r, change, mask, sizes)
    return scale, mask


def _filled(r: Rewriter, change: _Change, mask: Node | None, sizes: tuple[Any, Any]) -> Node:
    """A mask that is `fill` where scores are replaced, and `mask` elsewhere."""
    allowed = change.allowed
    assert allowed is not None
    data = r.data(allowed)
    if mask is None and data is not None:
        key = (allowed, change.fill, change.is_negated)
        stays = ~data if change.is_negated else data
        never = torch.full((), change.fill)
        return _as_scores(
            r, change.node, r.constant(key, torch.where(stays, torch.zeros(()), never)), sizes
        )
    rest, fill = (_number(r, 0.0) if mask is None else mask), _number(r, change.fill)
    pair = (fill, rest) if change.is_negated else (rest, fill)
    allowed = _as_scores(r, change.node, allowed, sizes)
    return r.elementwise(change.node, aten.where.self, allowed, *pair)


def _as_scores(r: Rewriter, node: Node, mask: Node, sizes: tuple[Any, Any]) -> Node:
    """A mask that `node` combines with scores, so that it broadcasts to [batch, heads, q, k]."""
    before, shape = traced_shape(node)[:-2], traced_shape(mask)
    if len(shape) <= 2 or alike(before, sizes):
        return mask
    wide = r.expand(node, mask, [*before, *shape[-2:]])
    return r.view(node, wide, [*sizes, *shape[-2:]])


def _number(r: Rewriter, value: float) -> Node:
    return r.constant(value, torch.tensor(value))


# --- operands -------------------------------------------------------------------------------------


def _heads(way: list[_Change], q: Node) -> tuple[Any, Any]:
    """Batch and heads: from scores with four dimensions, or else from q before it was reshaped."""
    product = traced_shape(way[0].node)
    count = product[0] if len(product) == 3 else 1
    source = q.args[0] if q.target is aten.view_copy.default else q
    for shape in (*(traced_shape(change.node) for change in way), traced_shape(source)):
        if len(shape) == 4 and alike([shape[0] * shape[1]], [count]):
            return shape[0], shape[1]
    return 1, count


def _in_heads(r: Rewriter, before: Node, node: Node, sizes: tuple[Any, Any]) -> Node:
    """A matrix for each head, [batch, heads, rows, columns]."""
    shape = [*sizes, *traced_shape(node)[-2:]]
    while node.target is aten.view_copy.default and not alike(traced_shape(node), shape):
        node = cast("Node", node.args[0])
    if alike(traced_shape(node), shape):
        return node
    return r.view(before, node, shape)


def _transposed(r: Rewriter, before: Node, node: Node) -> Node:
    """The last two dimensions exchanged; notes in `meta["once"]` the same before heads were
    repeated."""
    once = _before_repeats(r, before, node)
    if once is None and node.target is aten.permute_copy.default:
        source, dims = node.args
        if list(dims) == [0, 1, 3, 2] and isinstance(source, Node):  # type: ignore[arg-type]
            return source
    transposed = r.permute(before, node, [0, 1, 3, 2])
    if once is not None:
        transposed.meta["once"] = r.permute(before, once, [0, 1, 3, 2])
    return transposed


def _unscaled(r: Rewriter, node: Node) -> tuple[Node, float]:
    """A value without a scalar factor that it, or the source of its views, was multiplied by, and
    the factor."""
    one: Any = node
    while isinstance(one, Node) and len(one.users) <= 1:
        scaled = r.factor(one)
        if scaled is not None and alike(traced_shape(scaled[0]), traced_shape(one)):
            r.replace(one, scaled[0])
            return (scaled[0] if one is node else node), scaled[1]
        if one.target not in (*_VIEWS, aten.permute_copy.default, aten.expand_copy.default):
            break
        one = one.args[0]
    return node, 1.0


def _heads_once(r: Rewriter, before: Node, key: Any, value: Any) -> tuple[Node, Node]:
    """Keys and values before each of their heads was repeated for its group of queries."""
    once = [n.meta.get("once") or _before_repeats(r, before, n) for n in (key, value)]
    if once[0] is None or once[1] is None:
        return key, value
    is_same = alike(traced_shape(once[0])[1:2], traced_shape(once[1])[1:2])
    return (once[0], once[1]) if is_same else (key, value)


def _before_repeats(r: Rewriter, before: Node, node: Node) -> Node | None:
    """[batch, heads, ...], if a value is it with each head repeated n times; else None."""
    if node.target is not aten.view_copy.default:
        return None
    repeated = node.args[0]
    if not isinstance(repeated, Node) or repeated.target is not aten.expand_copy.default:
        return None
    single = cast("Node", repeated.args[0])
    shape, wide, flat = (traced_shape(one) for one in (single, repeated, node))
    fits = (
        len(shape) == 5
        and len(flat) == 4
        and alike(shape[2:3], [1])
        and alike(wide, [*shape[:2], wide[2], *shape[3:]])
        and alike(flat, [shape[0], shape[1] * wide[2], *shape[3:]])
    )
    if not fits:
        return None
    return r.view(before, single, [*shape[:2], *shape[3:]])
