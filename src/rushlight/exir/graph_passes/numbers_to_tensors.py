"""Passes that make numbers tensors, and the dtypes of operands one."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as PROMOTION
from torch._prims_common import elementwise_dtypes
from torch.fx import Graph, Node

from rushlight.exir.graph_passes.base import GraphPass
from rushlight.ir.custom_ops.dim_order import to_dim_order_copy
from rushlight.ir.dialect import LAYOUT_NAMES
from rushlight.ir.rewrite import KEPT_META, fake_mode_of, insert
from rushlight.ir.spec import dim_order_of

aten = torch.ops.aten
_DTYPES = {torch.SymInt: torch.int32, torch.SymFloat: torch.float32, torch.SymBool: torch.bool}
_PROMOTED = {
    aten.add.Tensor: PROMOTION.DEFAULT,
    aten.sub.Tensor: PROMOTION.DEFAULT,
    aten.mul.Tensor: PROMOTION.DEFAULT,
    aten.minimum.default: PROMOTION.DEFAULT,
    aten.div.Tensor: PROMOTION.INT_TO_FLOAT,
    aten.div.Tensor_mode: PROMOTION.DEFAULT,
}


def _tensor_arguments(node: Node) -> list[int]:
    """The positions of arguments that an operator's schema says are tensors."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return []
    given = zip(node.target._schema.arguments, node.args, strict=False)
    return [i for i, (one, _) in enumerate(given) if isinstance(one.type, torch.TensorType)]


class ScalarToTensorPass(GraphPass):
    """Makes a number that is given where a schema says tensor a constant of the graph."""

    def change(self, graph: Graph) -> bool:
        """Replace the numbers."""
        changed = False
        for node in list(graph.nodes):
            for position in _tensor_arguments(node):
                number = node.args[position]
                if isinstance(number, bool | int | float):
                    node.update_arg(position, _constant(graph, torch.tensor(number), node))
                    changed = True
        return changed


def _constant(graph: Graph, tensor: torch.Tensor, like: Node) -> Node:
    """A node before `like` for a tensor that the graph's module then holds."""
    owner: Any = graph.owning_module
    name = next(
        name for i in range(len(graph.nodes)) if not hasattr(owner, name := f"_tensor_constant{i}")
    )
    owner.register_buffer(name, tensor)
    with graph.inserting_before(like):
        node = graph.get_attr(name)
    node.meta = {key: like.meta[key] for key in KEPT_META if key in like.meta}
    node.meta["val"] = fake_mode_of(graph).from_tensor(tensor, static_shapes=True)
    return node


class SymToTensorPass(GraphPass):
    """Makes a symbolic number that is given where a schema says tensor a `scalar_tensor`."""

    def change(self, graph: Graph) -> bool:
        """Insert the calls."""
        changed = False
        for node in list(graph.nodes):
            for position in _tensor_arguments(node):
                number = node.args[position]
                value = number.meta.get("val") if isinstance(number, Node) else None
                dtype = _DTYPES.get(type(value))
                if dtype is None:
                    continue
                target = aten.scalar_tensor.default
                made = insert(graph, target, (number,), {"dtype": dtype}, like=node)
                node.update_arg(position, made)
                changed = True
        return changed


class RemoveMixedTypeOperators(GraphPass):
    """Makes the operands of arithmetic have the dtype that it is computed in."""

    def change(self, graph: Graph) -> bool:
        """Insert the conversions."""
        changed = False
        is_edge = not any(_takes_memory_format(node) for node in graph.nodes)
        for node in list(graph.nodes):
            kind = _PROMOTED.get(node.target)
            if node.target is aten.div.Tensor_mode and node.kwargs.get("rounding_mode") is None:
                kind = PROMOTION.INT_TO_FLOAT
            if kind is None:
                continue
            values = [_value(argument) for argument in node.args[:2]]
            dtype = elementwise_dtypes(*values, type_promotion_kind=kind)[1]
            for position in _tensor_arguments(node):
                value = values[position]
                if isinstance(value, torch.Tensor) and value.dtype != dtype:
                    made = _converted(graph, node, position, dtype, is_edge)
                    node.update_arg(position, made)
                    changed = True
        return changed


def _takes_memory_format(node: Node) -> bool:
    target = node.target
    return isinstance(target, OpOverload) and target._schema.name in LAYOUT_NAMES


def _value(argument: Any) -> Any:
    return argument.meta["val"] if isinstance(argument, Node) else argument


def _converted(graph: Graph, node: Node, position: int, dtype: torch.dtype, is_edge: bool) -> Node:
    argument: Any = node.args[position]
    kwargs: dict[str, Any] = {"dtype": dtype}
    if is_edge:
        kwargs["dim_order"] = list(dim_order_of(argument.meta["val"]))
    target = to_dim_order_copy if is_edge else aten._to_copy.default
    return insert(graph, target, (argument,), kwargs, like=node)
