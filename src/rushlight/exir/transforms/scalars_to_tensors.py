"""Replace numbers in arithmetic by tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from rushlight.edge import ExportPass
from rushlight.edge.export_pass import ProxyValue
from rushlight.edge.operators import ops

aten = ops.edge.aten


class ReplaceScalarWithTensorArgPass(ExportPass):
    """Gives additions, subtractions, products and quotients with a number a tensor in its place.

    Attributes:
        default_ops: the operators that are replaced, and those that take tensors.

    Args:
        scalar_to_tensor_ops: used instead of `default_ops`.
    """

    default_ops: ClassVar[dict[Any, Any]] = {
        aten.add.Scalar: aten.add.Tensor,
        aten.sub.Scalar: aten.sub.Tensor,
        aten.mul.Scalar: aten.mul.Tensor,
        aten.div.Scalar: aten.div.Tensor,
    }

    def __init__(self, scalar_to_tensor_ops: Mapping[Any, Any] | None = None) -> None:
        self.scalar_to_tensor_ops = (
            self.default_ops if scalar_to_tensor_ops is None else scalar_to_tensor_ops
        )

    def call_operator(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: dict[str, Any]
    ) -> ProxyValue:
        """Emit the operator that takes tensors."""
        if op not in self.scalar_to_tensor_ops:
            return super().call_operator(op, args, kwargs, meta)
        return self.get_replacement(op, args, kwargs, meta)

    def get_replacement(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: dict[str, Any]
    ) -> ProxyValue:
        """Emit the number as a tensor, in the dtype in which torch computes, and the operator."""
        value, number, *rest = args
        data = value.to_tensor()
        told = {"dtype": torch.result_type(data, number), "device": data.device}
        sizes = [1] if data.dim() else []
        tensor = super().call_operator(aten.full.default, (sizes, number), told, meta)
        if rest:  # the variant for tensors has alpha by its name alone
            kwargs = {**kwargs, "alpha": rest[0]}
        replaced = self.scalar_to_tensor_ops[op]
        return super().call_operator(replaced, (value, tensor), kwargs, meta)
