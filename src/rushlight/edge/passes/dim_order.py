"""Memory formats become dim orders: `_to_copy` and `clone` become `dim_order_ops`."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from rushlight.ir.branches import branches
from rushlight.ir.custom_ops.dim_order import clone_dim_order, define, to_dim_order_copy
from rushlight.ir.programs import copy_program
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


def with_dim_orders(program: ExportedProgram) -> ExportedProgram:
    """The program without memory formats, which `EdgeCompileConfig(_skip_dim_order=True)` leaves.

    Args:
        program: of the Edge dialect; not changed, and returned itself if it has no memory format.
    """
    if not any(_takes_format(node) for graph in _graphs(program) for node in graph.nodes):
        return program
    new = copy_program(program)
    for graph in _graphs(new):
        memory_format_to_dim_order(graph)
    for module in (*branches(new.graph_module), new.graph_module):
        module.recompile()
    return new


def _graphs(program: ExportedProgram) -> list[Graph]:
    return [program.graph, *(module.graph for module in branches(program.graph_module))]


def _takes_format(node: Node) -> bool:
    return node.target in (aten._to_copy.default, aten.clone.default)


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
