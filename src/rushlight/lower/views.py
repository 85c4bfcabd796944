"""Finds view copies that need no copy, because the result can share its base's memory."""

from __future__ import annotations

from typing import Any

import torch

from rushlight.ir.custom_ops.dim_order import clone_dim_order, to_dim_order_copy
from rushlight.ir.spec import TensorSpec

aten = torch.ops.aten

# Operators whose results always have their input's elements in the same order.
_RESHAPES = {
    aten.view_copy.default,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.unsqueeze_copy.default,
}
# Operators for which this depends on the specs.
_MAYBE = {
    clone_dim_order,
    to_dim_order_copy,
    aten.expand_copy.default,
    aten.permute_copy.default,
    aten.transpose_copy.int,
    aten.t_copy.default,
    aten.slice_copy.Tensor,
}


def _memory_order(spec: TensorSpec, dims: tuple[int, ...] | None = None) -> list[int]:
    """The dimensions longer than one, outermost first in memory (through a permutation)."""
    order = [d for d in spec.dim_order if spec.shape[d] != 1]
    return order if dims is None else [dims[d] for d in order]


def keeps_bytes(target: object, args: tuple[Any, ...], base: TensorSpec, out: TensorSpec) -> bool:
    """Whether the operator's result has its input's bytes, with other sizes.

    Args:
        target: the operator.
        args: its arguments.
        base, out: the specs of its input and of its result.
    """
    if base.dynamic or out.dynamic or base.dtype != out.dtype or base.numel != out.numel:
        return False
    if target in _RESHAPES:
        return base.contiguous and out.contiguous
    if target not in _MAYBE:
        return False
    if target in (aten.permute_copy.default, aten.transpose_copy.int, aten.t_copy.default):
        return _memory_order(base) == _memory_order(out, _permutation(target, args, len(out.shape)))
    return base.shape == out.shape and _memory_order(base) == _memory_order(out)


def _permutation(target: object, args: tuple[Any, ...], rank: int) -> tuple[int, ...]:
    """For every dimension of the result, the same dimension of the input."""
    if target is aten.permute_copy.default:
        return tuple(int(d) % rank for d in args[1])
    dims = list(range(rank))
    if rank >= 2:
        a, b = (int(d) % rank for d in args[1:3]) if len(args) == 3 else (0, 1)
        dims[a], dims[b] = dims[b], dims[a]
    return tuple(dims)
