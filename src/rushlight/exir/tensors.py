"""Tensors of the file's schema, made from specs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.exir.specs import TensorSpec
from rushlight.ir.spec import SCALAR_TYPES
from rushlight.schema import program as schema

_HALF = 32  # bits of each half of an offset


enum_to_scalar_map = {number: dtype for dtype, number in SCALAR_TYPES.items()}
"""The dtype that each number of files stands for."""
_LAYOUTS = {torch.strided: 0, torch.sparse_coo: 1}
_FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1}


def layout_enum(layout: torch.layout) -> int:
    """The number that a layout has in files; ExportError if it has none."""
    return _number_of(layout, _LAYOUTS)


def memory_format_enum(memory_format: torch.memory_format) -> int:
    """The number by which arguments of kernels are memory formats; ExportError if it has none."""
    return _number_of(memory_format, _FORMATS)


def _number_of(one: Any, numbers: Mapping[Any, int]) -> int:
    if one not in numbers:
        raise ExportError(
            f"{one} has no number: there are those of {', '.join(map(str, numbers))}",
            code=Code.INVALID_TYPE,
        )
    return numbers[one]


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
    if wanted not in enum_to_scalar_map:
        raise ExportError(f"no dtype of torch is {wanted!r}", code=Code.INVALID_TYPE)
    return enum_to_scalar_map[wanted]


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
