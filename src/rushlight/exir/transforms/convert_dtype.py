"""Compute in another dtype, between copies at inputs and outputs."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.edge.operators import ops
from rushlight.exir.transforms.refresh import call_like, refresh
from rushlight.ir.custom_ops import dim_order  # noqa: F401  (registers what follows)
from rushlight.ir.rewrite import example, fake_mode_of
from rushlight.ir.spec import dim_order_of

_aten = ops.edge.aten
# Their indices must be int64.
_INDEXED = (_aten.gather.default, _aten.scatter.src, _aten.scatter.value, _aten.scatter_add.default)
_INDEX = 2


class ConvertDtypePass(ExportPass):
    """Converts inputs of one dtype to another, and outputs back.

    A call that gives the first dtype by its nature, as `argmax` does, is followed by a copy.

    Args:
        src_dtype: the dtype that the graph computes in no more.
        dst_dtype: the dtype that it computes in instead.
        _skip_dim_order: copy with `_to_copy`, for graphs without dim orders.
    """

    def __init__(
        self, src_dtype: torch.dtype, dst_dtype: torch.dtype, _skip_dim_order: bool = False
    ) -> None:
        layouts = ops.edge.dim_order_ops._to_dim_order_copy.default
        self.copy_op: Any = _aten._to_copy.default if _skip_dim_order else layouts
        self.src_dtype, self.dst_dtype = src_dtype, dst_dtype

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        graph = graph_module.graph
        output = graph.output_node()
        before: Any = output.args[0]
        is_source = [isinstance(n, Node) and self._is_source(n) for n in before]
        changed: set[Node] = set()
        for node in list(graph.nodes):
            if node.op == "call_function" and self._is_reached(node, changed):
                self._compute(node)
                changed.add(node)
            if node.op in ("placeholder", "get_attr", "call_function") and self._is_source(node):
                changed.add(self._convert(node))
        after: Any = output.args[0]
        output.args = (
            tuple(
                self._copy(n, self.src_dtype, output) if was and not self._is_source(n) else n
                for n, was in zip(after, is_source, strict=True)
            ),
        )
        return PassResult(refresh(graph_module) if changed else graph_module, bool(changed))

    def _is_source(self, node: Node) -> bool:
        value = node.meta.get("val")
        return isinstance(value, torch.Tensor) and value.dtype == self.src_dtype

    def _is_reached(self, node: Node, changed: set[Node]) -> bool:
        """Whether a call has other inputs than before, or is told another dtype here."""
        schema = node.target._schema if isinstance(node.target, OpOverload) else None
        takes_dtype = schema is not None and any(a.name == "dtype" for a in schema.arguments)
        if takes_dtype and self._is_source(node):
            node.update_kwarg("dtype", self.dst_dtype)
            return True
        return not changed.isdisjoint(node.all_input_nodes)

    def _compute(self, node: Node) -> None:
        if node.target in _INDEXED and self.src_dtype == torch.int64:
            index: Any = node.args[_INDEX]
            node.update_arg(_INDEX, self._copy(index, torch.int64, node))
        with fake_mode_of(node.graph), torch.no_grad():
            target: Any = node.target
            node.meta["val"] = target(*example(node.args), **example(node.kwargs))

    def _convert(self, node: Node) -> Node:
        copy = self._copy(node, self.dst_dtype, node.next)
        node.replace_all_uses_with(
            copy, delete_user_cb=lambda user: user is not copy, propagate_meta=False
        )
        return copy

    def _copy(self, node: Node, dtype: torch.dtype, at: Node) -> Node:
        told: dict[str, Any] = {"dtype": dtype}
        if self.copy_op != _aten._to_copy.default:
            told["dim_order"] = list(dim_order_of(node.meta["val"]))
        copy = call_like(at, self.copy_op, (node,), told)
        copy.meta = {**node.meta, "val": copy.meta["val"]}
        return copy


class I64toI32(ConvertDtypePass):
    """Computes with int32 instead of int64."""

    def __init__(self, _skip_dim_order: bool = False) -> None:
        super().__init__(torch.int64, torch.int32, _skip_dim_order)
