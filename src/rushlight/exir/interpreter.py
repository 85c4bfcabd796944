"""Runs a finished program by torch's operators, for a look at its values."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch._ops import OpOverload

from rushlight.errors import Code, ExportError
from rushlight.exir.dim_orders import stride_from_dim_order
from rushlight.exir.tensors import get_scalar_type
from rushlight.schema import program as schema

ValueScalarType = int | str | float | torch.Tensor | None
ValueListType = list[torch.Tensor] | list[bool] | list[float] | list[int]
ValueType = ValueScalarType | ValueListType

_LISTS: dict[type, type] = {
    schema.IntList: int,
    schema.BoolList: bool,
    schema.DoubleList: float,
    schema.TensorList: torch.Tensor,
    schema.OptionalTensorList: torch.Tensor,
}
_SCALARS: dict[type, type] = {
    schema.Int: int,
    schema.Bool: bool,
    schema.Double: float,
    schema.String: str,
    schema.Tensor: torch.Tensor,
}


def comp_types(val: Any, input_val: Any) -> bool:
    """Whether a Python value can be put where a program has `val`.

    Args:
        val: a value of the schema: an `Int`, a `Tensor`, a `TensorList`….
        input_val: the value.

    Raises:
        ExportError: the program has a `Null` there, or a value of an unknown kind.
    """
    if type(val) in _SCALARS:
        return isinstance(input_val, _SCALARS[type(val)])
    if type(val) in _LISTS:
        one = _LISTS[type(val)]
        return isinstance(input_val, list) and all(isinstance(x, one) for x in input_val)
    raise ExportError(
        f"a value cannot be put where the program has {type(val).__name__}",
        code=Code.INVALID_TYPE,
    )


def resolve_op(operator: schema.Operator) -> OpOverload:
    """torch's operator of a program's table.

    Raises:
        ExportError: torch has none of that name.
    """
    namespace, _, name = operator.name.partition("::")
    try:
        packet = getattr(getattr(torch.ops, namespace), name)
        found: OpOverload = getattr(packet, operator.overload or "default")
    except AttributeError as error:
        raise ExportError(
            f"torch has no operator {operator.name}.{operator.overload}, which the program calls: "
            "run it by rushlight.load, or import the library that defines it",
            code=Code.OPERATOR_MISSING,
        ) from error
    return found


def make_operators_list(execution_plan: schema.ExecutionPlan) -> list[OpOverload]:
    """torch's operators of a method's table, in its order."""
    return [resolve_op(one) for one in execution_plan.operators]


class Interpreter:
    """Loads the values of a program's only method, and runs its instructions.

    Each value is a tensor of its own, however the program places them in memory.

    Args:
        program: of the schema.

    Attributes:
        execution_plan: the method.
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
        self._is_loaded = [False] * len(self._values)

    def get_value_list(self) -> list[Any]:
        """The values that were loaded or computed; None for others."""
        return list(self._values)

    def get_operators_list(self) -> list[OpOverload]:
        """The operators that the method calls."""
        return make_operators_list(self.execution_plan)

    def get_constant_tensors(self) -> list[torch.Tensor]:
        """The tensors whose content is in the program; nothing is loaded."""
        values = (one.val for one in self.execution_plan.values)
        return [self._tensor(v) for v in values if isinstance(v, schema.Tensor) and self._data(v)]

    def run(self, *raw_args: Any) -> list[Any]:
        """Run the method.

        Args:
            raw_args: its flat inputs.

        Returns:
            Its flat outputs.

        Raises:
            ExportError: another number of inputs is given, torch lacks an operator, or an
                instruction calls a delegate.
        """
        plan = self.execution_plan
        if len(raw_args) != len(plan.inputs):
            raise ExportError(
                f"{plan.name} takes {len(plan.inputs)} flat inputs, and {len(raw_args)} were given",
                code=Code.INVALID_ARGUMENT,
            )
        for index, value in zip(plan.inputs, raw_args, strict=True):
            self._put(index, value)
        for chain in plan.chains:
            at = 0
            while at < len(chain.instructions):
                at = self._step(at, chain.instructions[at].instr_args)
        return [self._value(index) for index in plan.outputs]

    def _step(self, at: int, instruction: schema.InstructionArguments) -> int:
        """Run the instruction at `at`; returns where to go on."""
        if isinstance(instruction, schema.KernelCall):
            self.call_kernel(instruction)
        elif isinstance(instruction, schema.MoveCall):
            self._put(instruction.move_to, self._value(instruction.move_from))
        elif isinstance(instruction, schema.JumpFalseCall):
            if not self._value(instruction.cond_value_index):
                return instruction.destination_instruction
        elif isinstance(instruction, schema.DelegateCall):
            raise ExportError(
                f"instruction {at} calls a delegate, which torch cannot run: use rushlight.load",
                code=Code.NOT_SUPPORTED,
            )
        return at + 1

    def call_kernel(self, kernel: schema.KernelCall) -> None:
        """Call an instruction's operator on the values that it names, and keep its results."""
        op = resolve_op(self.execution_plan.operators[kernel.op_index])
        listed = op._schema.arguments
        given = [self._value(index) for index in kernel.args[: len(listed)]]
        pairs = list(zip(listed, given, strict=True))
        with torch.no_grad():
            result = op(
                *(value for argument, value in pairs if not argument.kwarg_only),
                **{argument.name: value for argument, value in pairs if argument.kwarg_only},
            )
        returned = kernel.args[len(listed) :]
        results = list(result) if isinstance(result, tuple) else [result]
        if len(returned) == 1 and len(results) > 1:  # packed into a list
            self.set_value(returned[0], results)
            return
        for index, value in zip(returned, results, strict=False):
            self._put(index, value)

    def set_value(self, idx: int, input_val: Any) -> None:
        """Put a value in the place of the program's; a list of tensors sets each of its tensors.

        Raises:
            ExportError: the program has a value of another kind there.
        """
        val: Any = self.execution_plan.values[idx].val
        if not comp_types(val, input_val):
            raise ExportError(
                f"value {idx} of the program is {type(val).__name__}, and {input_val!r} was to be "
                "put there",
                code=Code.INVALID_TYPE,
            )
        if isinstance(val, schema.TensorList | schema.OptionalTensorList):
            if len(val.items) != len(input_val):
                raise ExportError(
                    f"value {idx} is a list of {len(val.items)}, and one of {len(input_val)} was "
                    "to be put there",
                    code=Code.INVALID_ARGUMENT,
                )
            for index, one in zip(val.items, input_val, strict=True):
                self._put(index, one)
        self._put(idx, input_val)

    def _put(self, index: int, value: Any) -> None:
        self._values[index], self._is_loaded[index] = value, True

    def _value(self, index: int) -> Any:
        """A value as it is now; lists have the tensors of now."""
        is_list = isinstance(
            self.execution_plan.values[index].val,
            schema.TensorList | schema.OptionalTensorList | schema.IntList,
        )
        return self._values[index] if self._is_loaded[index] and not is_list else self._load(index)

    def load_value(self, index: int) -> Any:
        """The value at `index`; a tensor that is no constant, and was not computed, has no
        content."""
        return self._value(index)

    def _load(self, index: int) -> Any:
        val: Any = self.execution_plan.values[index].val
        if isinstance(val, schema.Tensor):
            self._values[index] = self._tensor(val)
        elif isinstance(val, schema.TensorList | schema.OptionalTensorList):
            self._values[index] = [None if i < 0 else self._value(i) for i in val.items]
        elif isinstance(val, schema.IntList):
            self._values[index] = [self._value(i) for i in val.items]
        elif isinstance(val, schema.BoolList | schema.DoubleList):
            self._values[index] = list(val.items)
        elif not isinstance(val, schema.Null):
            self._values[index] = getattr(val, dataclasses.fields(val)[0].name)
        self._is_loaded[index] = True
        return self._values[index]

    def _data(self, val: schema.Tensor) -> bytes | None:
        """The content of a tensor that the program has; None for others."""
        if not 0 < val.data_buffer_idx < len(self._constants):
            return None
        return bytes(self._constants[val.data_buffer_idx].storage)

    def _tensor(self, val: schema.Tensor) -> torch.Tensor:
        dtype = get_scalar_type(val.scalar_type)
        strides = stride_from_dim_order(val.sizes, val.dim_order)
        made = torch.empty_strided(tuple(val.sizes), strides, dtype=dtype)
        stored = self._data(val)
        if stored:
            flat = torch.frombuffer(bytearray(stored), dtype=dtype)
            made = flat.as_strided(tuple(val.sizes), strides)
        return made
