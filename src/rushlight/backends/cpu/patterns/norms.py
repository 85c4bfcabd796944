"""The patterns of layer norm and RMS norm: means of squares, roots, factors and terms."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, alike, both, only_user, traced_shape

aten = torch.ops.aten


@dataclass(frozen=True)
class _Norm:
    """`x / sqrt(mean of x² + epsilon)`; in a layer norm, x minus its mean takes the place of x.

    Attributes:
        x: the value that is normalised.
        dims: the dimensions that it is normalised over.
        epsilon: a number.
        centred: whether the mean of x is subtracted first.
    """

    x: Node
    dims: tuple[int, ...]
    epsilon: float
    centred: bool


def fuse_norms(r: Rewriter) -> None:
    """Replace the patterns of layer norm and RMS norm by single calls."""
    for node in list(r.graph.nodes):
        if node.op == "call_function" and node.target in (aten.mul.Tensor, aten.div.Tensor):
            norm = _norm(r, node)
            if norm is not None:
                _replace(r, node, norm)


def _norm(r: Rewriter, node: Node) -> _Norm | None:
    for x, factor in both(r.operands(node, aten.mul.Tensor)):
        root = _under_inverse_root(r, factor)
        if root is not None:
            return _over_root(r, x, root)
    pair = r.operands(node, aten.div.Tensor)
    root = _under_root(r, pair[1]) if pair is not None else None
    return _over_root(r, pair[0], root) if pair is not None and root is not None else None


def _under_root(r: Rewriter, node: Any) -> Node | None:
    """x, if a call is its square root; else None."""
    if not isinstance(node, Node):
        return None
    if node.target is aten.sqrt.default:
        return node.all_input_nodes[0]
    is_power = node.target is aten.pow.Tensor_Scalar and r.number(node.args[1]) == 0.5
    return node.all_input_nodes[0] if is_power else None


def _under_inverse_root(r: Rewriter, node: Any) -> Node | None:
    """x, if a call is 1 / sqrt(x); else None."""
    while (scaled := r.factor(node)) is not None and scaled[1] == 1:
        node = scaled[0]
    if not isinstance(node, Node):
        return None
    if node.target is aten.rsqrt.default:
        return node.all_input_nodes[0]
    if node.target is aten.pow.Tensor_Scalar and r.number(node.args[1]) == -0.5:
        return node.all_input_nodes[0]
    if node.target is aten.reciprocal.default:
        return _under_root(r, node.args[0])
    pair = r.operands(node, aten.div.Tensor)
    return _under_root(r, pair[1]) if pair is not None and r.number(pair[0]) == 1 else None


def _over_root(r: Rewriter, x: Any, root: Node) -> _Norm | None:
    if not isinstance(x, Node) or x.meta["val"].dtype != torch.float32:
        return None
    inner, epsilon = r.term(root) or (root, 0.0)
    centre = _centre(r, x)
    if centre is not None and centre == _spread(r, inner):
        return _Norm(*centre, epsilon, True)
    mean = _mean(r, inner)
    if mean is None:
        return None
    squares, dims = mean
    squared = _squared(r, squares)
    if not all(isinstance(traced_shape(squares)[d], int) for d in dims):
        return None
    is_same = squared is x or (centre is not None and _centre(r, squared) == centre)
    if is_same and centre is not None and centre[1] == dims:
        return _Norm(*centre, epsilon, True)
    return _Norm(x, dims, epsilon, False) if squared is x else None


def _mean(r: Rewriter, node: Any) -> tuple[Node, tuple[int, ...]] | None:
    """x and dimensions, if a call is the mean of x over them with keepdim; else None."""
    if not isinstance(node, Node):
        return None
    scaled = r.factor(node)
    if scaled is not None and scaled[0].target is aten.sum.dim_IntList:
        total = _reduced(scaled[0])
        sizes = traced_shape(total[0]) if total is not None else []
        counts = [sizes[d] for d in total[1]] if total is not None else []
        if not counts or not all(isinstance(n, int) and n > 0 for n in counts):
            return None
        return total if math.isclose(scaled[1] * math.prod(counts), 1, rel_tol=1e-6) else None
    return _reduced(node) if node.target is aten.mean.dim else None


def _reduced(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    source, dims, *keeps = node.args
    if not isinstance(source, Node) or not dims or keeps != [True]:
        return None
    rank = len(traced_shape(source))
    return source, tuple(sorted(d % rank for d in cast("list[int]", dims)))


def _squared(r: Rewriter, node: Any) -> Node | None:
    """x, if a call is its square; else None."""
    if isinstance(node, Node) and node.target is aten.pow.Tensor_Scalar:
        return node.all_input_nodes[0] if r.number(node.args[1]) == 2 else None
    pair = r.operands(node, aten.mul.Tensor)
    return pair[0] if pair is not None and pair[0] is pair[1] else None


def _spread(r: Rewriter, node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """x and dimensions, if a call is the uncorrected variance of x with keepdim; else None."""
    if node.target is not aten.var.correction:
        return None
    is_plain = node.kwargs.get("correction") == 0 and node.kwargs.get("keepdim")
    source, dims = node.all_input_nodes[0], cast("list[int]", (*node.args, None)[1])
    rank = len(traced_shape(source))
    return (source, tuple(sorted(d % rank for d in dims))) if is_plain and dims else None


def _centre(r: Rewriter, node: Any) -> tuple[Node, tuple[int, ...]] | None:
    """x and dimensions, if a call is x minus its mean over them; else None."""
    pair = r.operands(node, aten.sub.Tensor)
    mean = _mean(r, pair[1]) if pair is not None else None
    return mean if pair is not None and mean is not None and mean[0] is pair[0] else None


# --- replacement ----------------------------------------------------------------------------------


def _replace(r: Rewriter, node: Node, norm: _Norm) -> None:
    """Put a norm, with the factor and the term of each column after it, in place of calls."""
    rank = len(traced_shape(norm.x))
    order = [*(d for d in range(rank) if d not in norm.dims), *norm.dims]
    width = [traced_shape(norm.x)[d] for d in norm.dims]
    last, weight = _vector(r, node, norm, aten.mul.Tensor)
    bias = None
    if norm.centred:
        last, bias = _vector(r, last, norm, aten.add.Tensor)
    is_permuted = order != list(range(rank))
    x = r.permute(last, norm.x, order) if is_permuted else norm.x
    vectors = [_flat(r, last, vector, width) for vector in (weight, bias)]
    shape = traced_shape(x)
    if norm.centred:
        target = aten.native_layer_norm.default
        args = (x, width, *vectors, norm.epsilon)
        whole = r.call(last, target, *args, shape=shape, replaced=[node])
        whole.meta["val"] = (whole.meta["val"], None, None)  # mean and deviation are not used
        new = r.call(last, operator.getitem, whole, 0, shape=shape)
    else:
        args = (x, width, vectors[0], norm.epsilon)
        new = r.call(last, aten.rms_norm.default, *args, shape=shape, replaced=[node])
    if is_permuted:
        new = r.permute(last, new, [order.index(d) for d in range(rank)])
    r.replace(last, new)


def _flat(r: Rewriter, before: Node, vector: Node | None, width: list[Any]) -> Node | None:
    if vector is None or alike(traced_shape(vector), width):
        return vector
    return r.view(before, vector, width)


def _vector(r: Rewriter, node: Node, norm: _Norm, target: Any) -> tuple[Node, Node | None]:
    """The only user of a norm, if it applies one number to each column, and these numbers; else
    the norm and None."""
    user = only_user(node)
    sizes = traced_shape(node)
    wanted = [size if d in norm.dims else 1 for d, size in enumerate(sizes)]
    for one, other in both(r.operands(user, target)):
        if user is None or one is not node or not isinstance(other, Node):
            continue
        shape = traced_shape(other)
        is_wide = alike([1] * (len(sizes) - len(shape)) + shape, wanted)
        if is_wide and other.meta["val"].dtype == torch.float32:
            return user, other
    return node, None
