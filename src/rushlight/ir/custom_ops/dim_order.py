"""The `dim_order_ops` operators of the Edge dialect, defined with torch's dispatcher.

They are ATen's layout-changing operators with the memory format written as a dim order: the
permutation of the dimensions from outermost to innermost in memory. Names and schemas are the ones
that ExecuTorch registers, so that programs interoperate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from rushlight.errors import Code, ExportError
from rushlight.ir.definitions import Definitions

_OPERATORS = Definitions(
    "dim_order_ops", ["executorch.exir.passes.dim_order_ops_registry"], held=True
)
_SCHEMAS = (
    "_to_dim_order_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
    "int[]? dim_order=None) -> Tensor",
    "_to_dim_order_copy.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, "
    "Tensor(a!) out) -> Tensor(a!)",
    "_empty_dim_order(int[] size, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None, int[]? dim_order=None) -> Tensor",
    "_empty_dim_order.out(int[] size, *, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)",
    "_clone_dim_order(Tensor self, *, bool non_blocking=False, int[]? dim_order=None) -> Tensor",
    "_clone_dim_order.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, "
    "Tensor(a!) out) -> Tensor(a!)",
)


def strides_of(sizes: Sequence[int], dim_order: Sequence[int]) -> list[int]:
    """Dense strides, in elements, of `sizes` laid out in `dim_order`."""
    strides = [1] * len(sizes)
    stride = 1
    for dim in reversed(dim_order):
        strides[dim] = stride
        stride = stride * sizes[dim]
    return strides


def _copy(
    self: torch.Tensor, dtype: torch.dtype | None, dim_order: Sequence[int] | None
) -> torch.Tensor:
    order = list(range(self.dim())) if dim_order is None else list(dim_order)
    strides = strides_of(self.shape, order)
    out = torch.empty_strided(self.shape, strides, dtype=dtype or self.dtype, device=self.device)
    return out.copy_(self)


def _to_dim_order_copy(
    self: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    dim_order: Sequence[int] | None = None,
) -> torch.Tensor:
    return _copy(self, dtype, dim_order)


def _empty_dim_order(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    dim_order: Sequence[int] | None = None,
) -> torch.Tensor:
    order = list(range(len(size))) if dim_order is None else list(dim_order)
    return torch.empty_strided(size, strides_of(size, order), dtype=dtype, device=device)


def _empty_into(
    size: Sequence[int], *, dim_order: Sequence[int] | None = None, out: torch.Tensor
) -> torch.Tensor:
    return out.resize_(size) if out.shape != torch.Size(size) else out


def _clone_dim_order(
    self: torch.Tensor, *, non_blocking: bool = False, dim_order: Sequence[int] | None = None
) -> torch.Tensor:
    return _copy(self, None, dim_order)


def _copy_into(
    self: torch.Tensor,
    *,
    non_blocking: bool = False,
    dim_order: Sequence[int] | None = None,
    out: torch.Tensor,
) -> torch.Tensor:
    return out.copy_(self)  # `out` has its layout already


_KERNELS: dict[str, Callable[..., torch.Tensor]] = {
    "_to_dim_order_copy": _to_dim_order_copy,
    "_to_dim_order_copy.out": _copy_into,
    "_empty_dim_order": _empty_dim_order,
    "_empty_dim_order.out": _empty_into,
    "_clone_dim_order": _clone_dim_order,
    "_clone_dim_order.out": _copy_into,
}


def define() -> None:
    """Define the operators that are not defined in this process yet.

    Raises:
        ExportError: another package has defined one of them with another schema.
    """
    for schema in _SCHEMAS:
        name = schema.partition("(")[0]
        if _OPERATORS.define(schema, _KERNELS.get(name)):
            continue
        known = str(_OPERATORS.schema_of(name))
        if known != str(torch._C.parse_schema(f"dim_order_ops::{schema}")):
            raise ExportError(
                f"another package has defined it with another schema: {known}; export in a process "
                f"that does not import that package",
                code=Code.INVALID_STATE,
                where=f"operator dim_order_ops::{name}",
            )


define()
to_dim_order_copy = torch.ops.dim_order_ops._to_dim_order_copy.default
clone_dim_order = torch.ops.dim_order_ops._clone_dim_order.default
