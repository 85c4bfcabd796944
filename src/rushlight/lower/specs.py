"""Tensor specs of Edge values: sizes up to their bounds, and the layout each result takes."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from rushlight.ir.bounds import Bounds
from rushlight.ir.custom_ops.dim_order import clone_dim_order, to_dim_order_copy
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.source import source_of
from rushlight.ir.spec import SCALAR_TYPES, TensorSpec, common_dim_order, dim_order_of

_LAYOUT_OPS = {clone_dim_order, to_dim_order_copy}
# Operators whose results have other dimensions than their inputs: these results are row-major.
_RESHAPING = frozenset(
    """
    aten::view_copy aten::permute_copy aten::transpose_copy aten::t_copy aten::expand_copy
    aten::unsqueeze_copy aten::squeeze_copy aten::select_copy aten::as_strided_copy
    aten::unfold_copy aten::diagonal_copy aten::repeat aten::mm aten::bmm aten::addmm
    aten::linear aten::embedding aten::index aten::native_layer_norm aten::pixel_shuffle
    """.split()
)


def unsupported_dtype(node: Node, dtype: torch.dtype) -> Finding:
    """The finding for a value of a dtype that is not in `SCALAR_TYPES`."""
    return Finding(
        "unsupported-dtype",
        f"{node.name} has dtype {dtype}, which a program cannot hold",
        "Compute in a dtype that it can: float32, float16, bfloat16, an integer or bool",
        source_of(node),
    )


class Specs:
    """Makes specs for the values of one program."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def of_input(self, node: Node, tensor: torch.Tensor) -> TensorSpec:
        """The spec of a placeholder, in the layout of its example or data."""
        return self._make(node, tensor, dim_order_of(tensor))

    def of_value(self, node: Node, tensor: torch.Tensor) -> TensorSpec:
        """The spec of a row-major result of `node` with the sizes and dtype of `tensor`."""
        return self._make(node, tensor, tuple(range(tensor.dim())))

    def least(self, size: int | torch.SymInt) -> int:
        """The least value of a size."""
        return self._bounds.interval(size)[0]

    def of_results(self, node: Node, inputs: list[TensorSpec]) -> Any:
        """The spec of a node's result, or a list of specs if it has several.

        A result takes its layout from the first input of its rank that is not row-major.
        """
        value = node.meta.get("val")
        if isinstance(value, list | tuple):
            return [self._result(node, one, inputs) for one in value]
        return self._result(node, value, inputs)

    def _result(self, node: Node, value: Any, inputs: list[TensorSpec]) -> TensorSpec | None:
        if not isinstance(value, torch.Tensor):
            return None
        name = getattr(getattr(node.target, "_schema", None), "name", "")
        rank = value.dim()
        if node.target in _LAYOUT_OPS:
            wanted: Any = node.kwargs.get("dim_order")
            order = tuple(range(rank)) if wanted is None else tuple(wanted)
        elif name in _RESHAPING:
            order = tuple(range(rank))
        else:
            order = common_dim_order((s.dim_order for s in inputs), rank)
        return self._make(node, value, order)

    def _make(self, node: Node, value: torch.Tensor, order: tuple[int, ...]) -> TensorSpec:
        if value.dtype not in SCALAR_TYPES:
            raise refusal(unsupported_dtype(node, value.dtype))
        shape = tuple(
            self._bounds.upper(s, f"size {d} of {node.name}", node)
            for d, s in enumerate(value.shape)
        )
        dynamic = any(
            self._bounds.interval(s)[0] != u for s, u in zip(value.shape, shape, strict=True)
        )
        return TensorSpec(value.dtype, shape, order, dynamic=dynamic, name=node.name)
