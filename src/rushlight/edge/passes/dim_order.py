"""Memory formats become dim orders: `_to_copy` and `clone` become `dim_order_ops`."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from rushlight.ir.custom_ops.dim_order import clone_dim_order, define, to_dim_order_copy
from rushlight.ir.spec import dim_order_of

aten = torch.ops.aten


def _dim_order(node: Node) -> list[int]:
    value: torch.Tensor = node.meta["val"]
    memory_format: Any = node.kwargs.get("memory_format")
    if memory_format is torch.channels_last:
        return [0, 2, 3, 1]
    if memory_format is torch.channels_last_3d:
        return [0, 2, 3, 4, 1]
    if memory_format is torch.contiguous_format:
        return list(range(value.dim()))
    return list(dim_order_of(value))


def memory_format_to_dim_order(graph: Graph) -> None:
    """Rewrite the operators that take a memory format."""
    define()  # they are undefined if an import of ExecuTorch has failed
    for node in graph.nodes:
        if node.target is aten._to_copy.default:
            dtype = node.kwargs.get("dtype") or node.meta["val"].dtype
            kwargs = {"dtype": dtype, "dim_order": _dim_order(node)}
            node.target, node.kwargs = to_dim_order_copy, kwargs
        elif node.target is aten.clone.default:
            node.target, node.kwargs = clone_dim_order, {"dim_order": _dim_order(node)}
