"""Tensors of the file's schema, made from specs."""

from __future__ import annotations

from dataclasses import replace

import torch

from rushlight.errors import Code, ExportError
from rushlight.exir.specs import TensorSpec
from rushlight.ir.spec import SCALAR_TYPES
from rushlight.schema import program as schema

_HALF = 32  # bits of each half of an offset


def scalar_type_enum(dtype: torch.dtype) -> schema.ScalarType:
    """The number that a dtype has in files.

    Raises:
        ExportError: a file cannot hold it.
    """
    if dtype not in SCALAR_TYPES:
        names = ", ".join(str(known) for known in SCALAR_TYPES)
        raise ExportError(
            f"a program cannot hold {dtype}; it can hold {names}", code=Code.INVALID_TYPE
        )
    return SCALAR_TYPES[dtype]


def get_scalar_type(scalar_type: schema.ScalarType | int) -> torch.dtype:
    """The dtype that a file's number stands for."""
    wanted = schema.ScalarType(scalar_type)
    for dtype, known in SCALAR_TYPES.items():
        if known == wanted:
            return dtype
    raise ExportError(f"no dtype of torch is {wanted!r}", code=Code.INVALID_TYPE)


def make_allocation_info(mem_id: int, mem_offset: int) -> schema.AllocationDetails:
    """The place of a tensor as the file has it.

    Raises:
        ExportError: a number is negative, or the offset needs more than 64 bits.
    """
    for name, value in (("mem_id", mem_id), ("mem_offset", mem_offset)):
        if value < 0:
            raise ExportError(f"{name} is negative: {value}", code=Code.INVALID_ARGUMENT)
    if mem_offset >> 2 * _HALF:
        raise ExportError(
            f"mem_offset {mem_offset} needs more than 64 bits", code=Code.INVALID_ARGUMENT
        )
    low, high = mem_offset & ((1 << _HALF) - 1), mem_offset >> _HALF
    return schema.AllocationDetails(mem_id, low, high)


def make_tensor_value(
    data_buffer_idx: int,
    allocation_info: schema.AllocationDetails | None,
    spec: TensorSpec,
) -> schema.Tensor:
    """A tensor of a file.

    Args:
        data_buffer_idx: the index of its bytes; 0 for none.
        allocation_info: its place in an arena, if it has one.
        spec: its dtype, sizes and layout.
    """
    return schema.Tensor(
        scalar_type=scalar_type_enum(spec.dtype),
        sizes=[int(size) for size in spec.shape],
        dim_order=list(spec.dim_order),
        requires_grad=spec.requires_grad,
        data_buffer_idx=data_buffer_idx,
        allocation_info=allocation_info,
        shape_dynamism=spec.shape_dynamism,
        extra_tensor_info=_with_device(spec),
    )


def _with_device(spec: TensorSpec) -> schema.ExtraTensorInfo | None:
    info = spec.extra_tensor_info
    if spec.device == schema.DeviceType.CPU:
        return info
    return replace(
        info or schema.ExtraTensorInfo(),
        device_type=spec.device,
        device_index=spec.device_index,
    )
