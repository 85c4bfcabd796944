"""Merge equal calls: nodes with the same operator and the same arguments become one node."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, Node

from rushlight.ir.operators import is_functional
from rushlight.ir.rewrite import has_effect, replace


def _hashable(arg: Any) -> Hashable:
    if isinstance(arg, list | tuple):
        return (type(arg).__name__, *map(_hashable, arg))
    if isinstance(arg, dict):
        return tuple(sorted((k, _hashable(v)) for k, v in arg.items()))
    if isinstance(arg, bool | int | float):
        return (type(arg).__name__, repr(arg))  # 1, 1.0 and True differ, and NaN equals itself
    return arg if isinstance(arg, Hashable) else id(arg)


def common_subexpression(graph: Graph) -> int:
    """Merge equal nodes; returns how many were removed."""
    first: dict[Hashable, Node] = {}
    merged = 0
    for node in list(graph.nodes):
        target = node.target
        if node.op != "call_function":
            continue
        if isinstance(target, OpOverload):
            if has_effect(target) or not is_functional(target):
                continue
        elif isinstance(target, torch._ops.HigherOrderOperator):
            continue
        key = (target, _hashable(node.args), _hashable(node.kwargs))
        if key in first:
            replace(node, first[key])
            merged += 1
        else:
            first[key] = node
    return merged
