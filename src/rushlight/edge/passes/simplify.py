"""Remove `where` operators whose result follows from a constant condition.

Attention masks are often constants: all true, or causal. If all elements of the mask are equal,
`where(mask, a, b)` is `a` or `b`. If the mask leaves every row at least one key, setting the
weights of fully masked rows to zero does nothing.
"""

from __future__ import annotations

import math

import torch
from torch.fx import Node

from rushlight.edge.constants import Constants
from rushlight.ir.rewrite import remove_dead, replace

aten = torch.ops.aten


def _branch(constants: Constants, node: Node) -> Node | None:
    """The operand that `where(condition, a, b)` always selects, if it has the result's shape."""
    condition, chosen, other = node.args
    if not isinstance(condition, Node) or condition not in constants.nodes():
        return None
    mask = constants.value(condition)
    if mask.numel() == 0 or not (mask.all() or not mask.any()):
        return None
    branch = chosen if bool(mask.all()) else other
    if not isinstance(branch, Node):
        return None
    value, result = branch.meta["val"], node.meta["val"]
    same = value.dtype == result.dtype and list(map(str, value.shape)) == list(
        map(str, result.shape)
    )
    return branch if same else None


def _zeroes_nothing(constants: Constants, node: Node) -> Node | None:
    """The weights of `where(blocked, 0, softmax(where(mask, scores, lowest)))`, if they are also
    the result.

    `blocked` is the complement of the constant `mask`; a blocked score is so low that the softmax
    gives it exactly zero unless its whole row is blocked.
    """
    blocked, instead, weights = node.args
    if not isinstance(weights, Node) or weights.target is not aten._softmax.default:
        return None
    inner = weights.args[0]
    while isinstance(inner, Node) and inner.target is aten.view.default:
        inner = inner.args[0]
    if not isinstance(inner, Node) or inner.target is not aten.where.self:
        return None
    known = constants.nodes()
    mask = inner.args[0]
    if (
        blocked not in known
        or mask not in known
        or weights.args[1] not in (-1, weights.meta["val"].dim() - 1)
    ):
        return None
    lowest = torch.finfo(weights.meta["val"].dtype).min
    if _scalar(constants, instead) != 0 or not _scalar(constants, inner.args[2]) <= lowest:
        return None
    allowed = constants.value(mask)  # type: ignore[arg-type]
    zeroed = constants.value(blocked)  # type: ignore[arg-type]
    if allowed.dim() == 0 or allowed.shape != zeroed.shape:
        return None
    complement = bool((allowed != zeroed).all())
    return weights if complement and bool(allowed.any(-1).all()) else None


def _scalar(constants: Constants, node: object) -> float:
    """The value of a constant with one element; NaN, which equals nothing, for anything else."""
    if not isinstance(node, Node) or node not in constants.nodes():
        return math.nan
    value = constants.value(node)
    return float(value) if value.numel() == 1 else math.nan


def simplify(constants: Constants) -> int:
    """Simplify `constants.graph`; returns how many `where` operators were removed."""
    dropped = 0
    for node in list(constants.graph.nodes):
        if node.target is not aten.where.self:
            continue
        by = _branch(constants, node) or _zeroes_nothing(constants, node)
        if by is not None:
            replace(node, by)
            dropped += 1
    if dropped:
        remove_dead(constants.graph)
    return dropped
