"""Dim orders, strides and memory formats, one from the other."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import guard_or_false

from rushlight.errors import Code, ExportError

_LAST = {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]}
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def get_memory_format(dim_order: Sequence[int] | None) -> torch.memory_format:
    """The memory format of a dim order; that of None is `torch.preserve_format`.

    Raises:
        ExportError: no memory format has this order.
    """
    if dim_order is None:
        return torch.preserve_format
    order = list(dim_order)
    if order == list(range(len(order))):
        return torch.contiguous_format
    if order == _LAST.get(len(order)):
        return _FORMATS[len(order)]
    raise ExportError(
        f"no memory format of torch has the dim order {order}: it is row-major, or one of "
        f"{list(_LAST.values())}",
        code=Code.NOT_SUPPORTED,
    )


def get_dim_order(memory_format: torch.memory_format | None, ndim: int) -> list[int] | None:
    """The dim order that a memory format has for `ndim` dimensions; that of None, or of
    `torch.preserve_format`, is None.

    Raises:
        ExportError: the format is not one of so many dimensions.
    """
    if memory_format in (None, torch.preserve_format):
        return None
    if memory_format == torch.contiguous_format:
        return list(range(ndim))
    if memory_format == _FORMATS.get(ndim):
        return list(_LAST[ndim])
    raise ExportError(
        f"{memory_format} is not a format of tensors with {ndim} dimensions",
        code=Code.INVALID_ARGUMENT,
    )


def is_channel_last_dim_order(tensor: torch.Tensor) -> bool:
    """Whether a tensor's channels are innermost in memory."""
    return list(tensor.dim_order()) == _LAST.get(tensor.dim())


def is_contiguous_dim_order(tensor: torch.Tensor) -> bool:
    """Whether a tensor is row-major."""
    return list(tensor.dim_order()) == list(range(tensor.dim()))


def contiguous_stride_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a row-major tensor."""
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def _is_less(a: Any, b: Any) -> bool:
    """Whether a stride is less than another: of two that are not known, if it divides the other."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    if guard_or_false(a == b) or guard_or_false(a % b == 0):
        return False
    return True if guard_or_false(b % a == 0) else bool(a < b)


def dim_order_from_stride(stride: Sequence[int]) -> tuple[int, ...]:
    """Dimensions from the greatest stride to the least; those of one stride stay in their order.

    Raises:
        RuntimeError: a stride is 0, as of a dimension that was broadcast.
    """
    for one in stride:
        torch._check(one != 0, lambda: f"strides {tuple(stride)} have a 0: no dim order has them")

    def compare(a: int, b: int) -> int:
        return 1 if _is_less(stride[a], stride[b]) else -1 if _is_less(stride[b], stride[a]) else 0

    return tuple(sorted(range(len(stride)), key=functools.cmp_to_key(compare)))


def stride_from_dim_order(sizes: Sequence[int], dim_order: Sequence[int]) -> list[int]:
    """The strides of a dense tensor of these sizes whose dimensions lie in that order."""
    strides = [1] * len(sizes)
    inner = 1
    for dim in reversed(list(dim_order)):
        strides[dim] = inner
        inner = inner * sizes[dim]
    return strides


def num_bytes_from_shape_and_dtype(shape: Sequence[int], dtype: torch.dtype) -> int:
    """The bytes of a tensor's elements."""
    return math.prod(shape) * dtype.itemsize
