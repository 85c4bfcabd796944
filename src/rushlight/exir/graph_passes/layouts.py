"""Passes over memory formats and dim orders."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph

from rushlight.edge.operators import edge_operator
from rushlight.edge.passes.dim_order import memory_format_to_dim_order
from rushlight.exir.dim_orders import get_memory_format
from rushlight.exir.graph_passes.base import GraphPass
from rushlight.ir.custom_ops.dim_order import clone_dim_order, to_dim_order_copy
from rushlight.ir.rewrite import insert

aten = torch.ops.aten
# Operators whose portable kernels take row-major inputs.
_ROW_MAJOR = frozenset(
    (
        aten._adaptive_avg_pool2d.default,
        aten.avg_pool2d.default,
        aten.expand_copy.default,
        aten.mean.dim,
        aten.sum.dim_IntList,
    )
)

DimOrderOpsMap = {
    edge_operator(aten._to_copy.default): edge_operator(to_dim_order_copy),
    edge_operator(aten.empty.memory_format): edge_operator(
        torch.ops.dim_order_ops._empty_dim_order.default
    ),
    edge_operator(aten.clone.default): edge_operator(clone_dim_order),
}
"""The operator that takes a dim order for each that takes a memory format."""
MemoryFormatOpsMap = {order: format for format, order in DimOrderOpsMap.items()}
"""The same, the other way round."""


class MemoryFormatOpsPass(GraphPass):
    """Makes operators that take a memory format those that take a dim order."""

    def change(self, graph: Graph) -> bool:
        """Change the calls."""
        before = [node.target for node in graph.nodes]
        memory_format_to_dim_order(graph)
        return before != [node.target for node in graph.nodes]


class DimOrderOpsRevertPass(GraphPass):
    """Makes operators that take a dim order those that take a memory format."""

    def change(self, graph: Graph) -> bool:
        """Change the calls."""
        formats = {to_dim_order_copy: aten._to_copy.default, clone_dim_order: aten.clone.default}
        changed = False
        for node in graph.nodes:
            target = formats.get(node.target)
            if target is None:
                continue
            kwargs = dict(node.kwargs)
            kwargs.pop("non_blocking", None)
            order: Any = kwargs.pop("dim_order", None)
            kwargs["memory_format"] = get_memory_format(order)
            node.target, node.kwargs, changed = target, kwargs, True
        return changed


class LegalizePortableDimOrderPass(GraphPass):
    """Copies inputs of other layouts for operators whose portable kernels take row-major ones."""

    def change(self, graph: Graph) -> bool:
        """Insert the copies."""
        changed = False
        for node in list(graph.nodes):
            if node.target not in _ROW_MAJOR:
                continue
            source: Any = node.args[0]
            value = source.meta["val"]
            order = list(range(value.dim()))
            if list(value.dim_order()) == order:
                continue
            kwargs = {"dtype": value.dtype, "dim_order": order}
            node.update_arg(0, insert(graph, to_dim_order_copy, (source,), kwargs, like=node))
            changed = True
        return changed


def convert_constant_dim_order_pass(exported_program: ExportedProgram) -> ExportedProgram:
    """Make constants and buffers row-major that are neither so nor channels-last.

    The program is changed, and returned.
    """
    nodes = {n.name: n for n in exported_program.graph.find_nodes(op="placeholder")}
    kinds = (InputKind.CONSTANT_TENSOR, InputKind.BUFFER)
    for spec in exported_program.graph_signature.input_specs:
        name = str(spec.target)
        is_state = spec.kind == InputKind.BUFFER and spec.persistent
        held: Any = exported_program.state_dict if is_state else exported_program.constants
        tensor = held.get(name) if spec.kind in kinds else None
        if not isinstance(tensor, torch.Tensor) or tensor.is_contiguous():
            continue
        if not tensor.is_contiguous(memory_format=torch.channels_last):
            held[name] = tensor.contiguous()
            meta = nodes[spec.arg.name].meta
            meta["val"] = meta["val"].contiguous()
    return exported_program
