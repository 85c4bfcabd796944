"""Fold what surrounds a convolution into it: zero padding before it, batch norm after it.

Both are exact up to rounding. The padding is added to the convolution's own padding. A batch norm
in inference is a scale and a shift per output channel; they are multiplied into the weight and the
bias, which are then rounded to their dtype.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

from rushlight.edge.constants import Constants
from rushlight.ir.rewrite import insert, remove_dead, replace

aten = torch.ops.aten
_BATCH_NORM = aten._native_batch_norm_legit_no_training.default


def _is_convolution(node: Any) -> bool:
    return isinstance(node, Node) and node.target is aten.convolution.default


def _fold_padding(node: Node) -> bool:
    """Add a symmetric zero padding of `node`'s input to its own padding."""
    source: Any = node.args[0]
    transposed: Any = node.args[6]
    if (
        transposed
        or not isinstance(source, Node)
        or source.target is not aten.constant_pad_nd.default
    ):
        return False
    pads: Any = source.args[1]
    value = source.args[2] if len(source.args) > 2 else 0
    own: Any = node.args[4]
    spatial = len(own)
    pairs = [tuple(pads[i : i + 2]) for i in range(0, len(pads), 2)]
    symmetric = all(isinstance(a, int) and a == b and a >= 0 for a, b in pairs)
    if value != 0 or len(pairs) > spatial or not symmetric or len(source.users) != 1:
        return False
    extra = [a for a, _ in reversed(pairs)]
    extra = [0] * (spatial - len(extra)) + extra
    node.update_arg(0, source.args[0])
    node.update_arg(4, [p + e for p, e in zip(own, extra, strict=True)])
    return True


def _fold_batch_norm(constants: Constants, norm: Node) -> bool:
    """Replace `norm(convolution(x))` by a convolution with other constants."""
    source: Any = norm.args[0]
    known = constants.nodes()
    if not _is_convolution(source) or len(source.users) != 1 or source.args[6]:
        return False
    if any(u.target is not operator.getitem or u.args[1] != 0 for u in norm.users):
        return False
    x, weight, bias, *rest = source.args
    parts = [weight, *norm.args[3:5], *(a for a in (bias, *norm.args[1:3]) if a is not None)]
    if not all(a in known for a in parts) or not norm.meta["val"][0].is_floating_point():
        return False
    gamma, beta, mean, variance = (_value(constants, a) for a in norm.args[1:5])
    assert mean is not None and variance is not None
    eps: Any = norm.args[6]
    scale = torch.rsqrt(variance.double() + eps)
    scale = scale if gamma is None else scale * gamma.double()
    kernel = _value(constants, weight)
    assert kernel is not None
    old_bias = _value(constants, bias)
    shift = (0.0 if old_bias is None else old_bias.double()) - mean.double()
    new_bias = shift * scale + (0.0 if beta is None else beta.double())
    new_kernel = kernel.double() * scale.reshape(-1, *[1] * (kernel.dim() - 1))
    new = (new_kernel, new_bias)
    if not all(_holds(kernel.dtype, exact) for exact in new):
        return False
    args = (x, *(constants.add(exact.to(kernel.dtype), like=norm) for exact in new), *rest)
    folded = insert(norm.graph, source.target, args, like=norm, value=norm.meta["val"][0])
    for user in list(norm.users):
        replace(user, folded)
    return True


def _holds(dtype: torch.dtype, exact: torch.Tensor) -> bool:
    """Whether a dtype holds the numbers to its usual precision: none is out of its range, and they
    are not all near its smallest numbers, where float16 has few digits."""
    error, size = (t.abs().amax() for t in (exact.to(dtype) - exact, exact))
    return bool(error <= torch.finfo(dtype).eps * size)


def _value(constants: Constants, node: Any) -> torch.Tensor | None:
    return None if node is None else constants.value(node).detach()


def fold_convolution(constants: Constants) -> int:
    """Fold paddings and batch norms of `constants.graph`; returns how many."""
    folded = 0
    for node in list(constants.graph.nodes):
        if _is_convolution(node):
            folded += _fold_padding(node)
        elif node.target is _BATCH_NORM:
            folded += _fold_batch_norm(constants, node)
    if folded:
        remove_dead(constants.graph)
    return folded
