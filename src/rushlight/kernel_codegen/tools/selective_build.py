"""The operators that a program calls, and the dtypes and dim orders that it calls them with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rushlight.errors import Code, LoadError
from rushlight.schema import program as fb
from rushlight.serialize.bundle import program_in
from rushlight.serialize.pte import read_pte

_Item = TypeVar("_Item")
_KINDS = {
    fb.Null: 1,
    fb.Int: 2,
    fb.Bool: 3,
    fb.Double: 4,
    fb.Tensor: 5,
    fb.String: 6,
    fb.IntList: 7,
    fb.DoubleList: 8,
    fb.BoolList: 9,
    fb.TensorList: 10,
    fb.OptionalTensorList: 11,
}
"""The number of each kind of value in a program's union of them."""


@dataclass(frozen=True)
class _Program:
    """A program that was read.

    Attributes:
        program: as the schema has it.
    """

    program: fb.Program


@dataclass(frozen=True)
class _IOMetaData:
    """What is known of one argument of a call.

    Attributes:
        kernel_type: the number of the value's kind: 5 for a tensor.
        dtype: of a tensor, or of the first in a list; 0 for other values.
        dim_order: likewise; empty for other values.
    """

    kernel_type: int
    dtype: int = 0
    _order: tuple[int, ...] = field(default=())

    @property
    def dim_order(self) -> list[int]:
        """The order of dimensions in memory."""
        return list(self._order)


def _get_program_from_buffer(buffer: bytes) -> _Program:
    """Reads a program, or that of a bundle.

    Raises:
        LoadError: it is no program, or damaged; says where.
    """
    return _Program(read_pte(program_in(buffer)).program)


def _name(operator: fb.Operator) -> str:
    return f"{operator.name}.{operator.overload}" if operator.overload else operator.name


def _at(items: Sequence[_Item], index: int, method: str, what: str) -> _Item:
    """An item that a method names by its index."""
    if not 0 <= index < len(items):
        raise LoadError(
            f"an instruction names {what} {index} of {len(items)}; export the model again",
            code=Code.INVALID_PROGRAM,
            where=method,
        )
    return items[index]


def _calls(program: _Program) -> Iterator[tuple[fb.ExecutionPlan, str, list[int]]]:
    """(method, operator, indices of the arguments) of each call of a kernel."""
    for plan in program.program.execution_plan:
        for chain in plan.chains:
            for instruction in chain.instructions:
                call = instruction.instr_args
                if isinstance(call, fb.KernelCall):
                    operator = _at(plan.operators, call.op_index, plan.name, "operator")
                    yield plan, _name(operator), call.args


def _get_program_operators(program: _Program) -> list[str]:
    """The operators of all methods, in the order in which methods list them."""
    names = (_name(op) for p in program.program.execution_plan for op in p.operators)
    return list(dict.fromkeys(names))


def _get_io_metadata_for_program_operators(
    program: _Program,
) -> dict[str, set[tuple[_IOMetaData, ...]]]:
    """{operator: what is known of the arguments of each kind of call}."""
    found: dict[str, set[tuple[_IOMetaData, ...]]] = {}
    for plan, name, arguments in _calls(program):
        call = tuple(_metadata(plan, index) for index in arguments)
        found.setdefault(name, set()).add(call)
    return found


def _metadata(plan: fb.ExecutionPlan, index: int) -> _IOMetaData:
    value = _at(plan.values, index, plan.name, "value").val
    kind = _KINDS.get(type(value), 0)
    tensor: object = value
    if isinstance(value, fb.TensorList | fb.OptionalTensorList):
        present = [item for item in value.items if item >= 0]
        tensor = None
        if present:
            tensor = _at(plan.values, present[0], plan.name, "value").val
    if not isinstance(tensor, fb.Tensor):
        return _IOMetaData(kind)
    return _IOMetaData(kind, int(tensor.scalar_type), tuple(tensor.dim_order))
