"""What adapters of a language model's runner add to linear layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.sizes import shape_of
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.operators.facts import REALS
from rushlight.backends.cpu.tiles.clusters import is_anchor_target
from rushlight.ir.custom_ops.adapter import adapter
from rushlight.ir.operators import arguments
from rushlight.partition.operators import Operator, val_of
from rushlight.schema import cpu_engine as fb

aten = torch.ops.aten


def _why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    result, x, sequences = (val_of(args[name]) for name in ("result", "x", "sequences"))
    if result.dtype not in REALS or x.dtype not in REALS or min(result.dim(), x.dim()) < 1:
        return "an adapter takes rows of numbers"
    if sequences.dtype != torch.int64 or sequences.dim() != 1:
        return "its sequences are not int64 [tokens]"
    sites, widths = args["sites"], args["widths"]
    if len(sites) != len(widths) or not 0 < len(sites) <= fb.Limit.NODE_VALUES:
        return f"it has {len(sites)} layers with {len(widths)} widths"
    if min(*sites, 0) < 0 or min(widths) < 1 or sum(widths) != result.shape[-1]:
        return f"its layers of {widths} columns are not those of its results"
    if not 0 < args["rank"] <= fb.Limit.ADAPTER_RANK:
        return f"its rank is {args['rank']}; 1 to {fb.Limit.ADAPTER_RANK:d} are possible"
    return None


def _adapter(b: Builder, node: Node) -> View:
    args = arguments(node)
    before = b.value(args["result"])
    out = before if _is_its_own(args["result"], node) else b.new(shape_of(node))
    views = [b.rows(before), b.rows(b.value(args["x"])), b.value(args["sequences"])]
    rows = views[0] if out is before else b.rows(out)
    b.emit(fb.Adapter(list(args["sites"]), list(args["widths"]), args["rank"]), views, [rows])
    return out


def _is_its_own(node: Node, user: Node) -> bool:
    """Whether nothing but `user` reads the result of a product, which lies in memory of its own."""
    while list(node.users) == [user] and node.target is aten.view_copy.default:
        node, user = node.all_input_nodes[0], node
    return list(node.users) == [user] and is_anchor_target(node.target)


OPERATORS = {adapter: Operator(_adapter, _why_not)}
