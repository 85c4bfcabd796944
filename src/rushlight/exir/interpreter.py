"""A finished program's values as torch has them."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch._ops import OpOverload

from rushlight.errors import Code, ExportError
from rushlight.exir.dim_orders import stride_from_dim_order
from rushlight.exir.tensors import get_scalar_type
from rushlight.schema import program as schema


class Interpreter:
    """Loads the values of a program's only method.

    Args:
        program: of the schema.
    """

    def __init__(self, program: schema.Program) -> None:
        if len(program.execution_plan) != 1:
            raise ExportError(
                f"the program has {len(program.execution_plan)} methods: give one with one",
                code=Code.INVALID_ARGUMENT,
            )
        self.execution_plan = program.execution_plan[0]
        self._constants = program.constant_buffer
        self._values: list[Any] = [None] * len(self.execution_plan.values)

    def get_value_list(self) -> list[Any]:
        """The values that were loaded; None for others."""
        return list(self._values)

    def get_operators_list(self) -> list[OpOverload]:
        """The operators that the method calls."""
        found = []
        for one in self.execution_plan.operators:
            namespace, _, name = one.name.partition("::")
            packet = getattr(getattr(torch.ops, namespace), name)
            found.append(getattr(packet, one.overload or "default"))
        return found

    def load_value(self, index: int) -> Any:
        """The value at `index`; a tensor that is no constant has no content."""
        val: Any = self.execution_plan.values[index].val
        if isinstance(val, schema.Tensor):
            self._values[index] = self._tensor(val)
        elif isinstance(val, schema.TensorList | schema.OptionalTensorList):
            self._values[index] = [None if i < 0 else self.load_value(i) for i in val.items]
        elif isinstance(val, schema.IntList):
            self._values[index] = [self.load_value(i) for i in val.items]
        elif isinstance(val, schema.BoolList | schema.DoubleList):
            self._values[index] = list(val.items)
        elif not isinstance(val, schema.Null):
            self._values[index] = getattr(val, dataclasses.fields(val)[0].name)
        return self._values[index]

    def _tensor(self, val: schema.Tensor) -> torch.Tensor:
        dtype = get_scalar_type(val.scalar_type)
        strides = stride_from_dim_order(val.sizes, val.dim_order)
        made = torch.empty_strided(tuple(val.sizes), strides, dtype=dtype)
        if val.data_buffer_idx and val.data_buffer_idx < len(self._constants):
            stored = bytearray(self._constants[val.data_buffer_idx].storage)
            flat = torch.frombuffer(stored, dtype=dtype)
            made = flat.as_strided(tuple(val.sizes), strides)
        return made
