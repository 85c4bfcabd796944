"""Checks the rules of the format before a program is written.

A program that breaks a rule is a mistake of the compiler. Here the error can name the value or the
instruction; a runtime could only refuse the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rushlight.errors import Code, ExportError
from rushlight.schema import program as fb
from rushlight.schema.sizes import XNNPACK_ID, XNNPACK_OVERREAD, tensor_bytes
from rushlight.serialize.file import PTEFile
from rushlight.serialize.segments import as_bytes

_MAX_RANK = 16
_MAX_STRIDE = 2**31 - 1


def check_program(pte: PTEFile) -> None:
    """Tests every rule of the format that does not depend on a runtime.

    Raises:
        ExportError: for the first rule that is broken.
    """
    for name, parts in (("constants", pte.constants), ("mutable_data", pte.mutable_data)):
        if parts and len(as_bytes(parts[0])):
            raise _error(name, "element 0 stands for 'none' and must be empty")
    names: set[str] = set()
    for plan in pte.program.execution_plan:
        if plan.name in names:
            raise _error(plan.name, "two methods have this name")
        names.add(plan.name)
        _MethodCheck(pte, plan).run()


class _MethodCheck:
    def __init__(self, pte: PTEFile, plan: fb.ExecutionPlan) -> None:
        self._plan = plan
        self._constants = [len(as_bytes(part)) for part in pte.constants]
        self._mutable = [len(as_bytes(part)) for part in pte.mutable_data]
        self._n_blobs = len(pte.delegate_blobs)

    def run(self) -> None:
        plan = self._plan
        where = plan.name
        arenas = plan.non_const_buffer_sizes
        if not arenas or arenas[0] != 0 or min(arenas) < 0:
            raise _error(where, f"non_const_buffer_sizes must be [0, sizes ...], it is {arenas}")
        for i, value in enumerate(plan.values):
            self._value(f"{where}: value {i}", i, value.val)
        self._indices(f"{where}: inputs", plan.inputs)
        self._indices(f"{where}: outputs", plan.outputs)
        for i, delegate in enumerate(plan.delegates):
            if delegate.processed.index >= self._n_blobs:
                what = f"its payload is number {delegate.processed.index} of {self._n_blobs}"
                raise _error(f"{where}: delegate {i} ({delegate.id})", what)
        if not plan.chains:
            raise _error(where, "it has no chain of instructions")
        for chain in plan.chains:
            if chain.stacktrace is not None and len(chain.stacktrace) != len(chain.instructions):
                raise _error(where, "a stack trace needs one entry for each instruction")
            for i, instruction in enumerate(chain.instructions):
                at = f"{where}: instruction {i}"
                self._instruction(at, instruction.instr_args, len(chain.instructions))

    def _value(self, where: str, i: int, value: fb.KernelTypes) -> None:
        if isinstance(value, fb.Tensor):
            self._tensor(where, value)
        elif isinstance(value, fb.IntList):
            self._indices(where, value.items)
            for item in value.items:
                if not isinstance(self._plan.values[item].val, fb.Int):
                    raise _error(where, f"its items must be Ints, value {item} is not")
        elif isinstance(value, fb.TensorList | fb.OptionalTensorList):
            items = value.items
            if isinstance(value, fb.OptionalTensorList):
                items = [item for item in items if item != -1]
            self._indices(where, items)
            if any(item >= i for item in items):
                raise _error(where, f"a list must come after its items, it has {items}")

    def _tensor(self, where: str, tensor: fb.Tensor) -> None:
        rank = len(tensor.sizes)
        if rank > _MAX_RANK:
            raise _error(where, f"it has {rank} dimensions, at most {_MAX_RANK} are possible")
        if sorted(tensor.dim_order) != list(range(rank)):
            raise _error(where, f"dim order {tensor.dim_order} does not fit sizes {tensor.sizes}")
        if tensor.storage_offset != 0 or tensor.layout != 0:
            raise _error(where, "storage offset and layout must be 0")
        try:
            size = tensor_bytes(tensor.scalar_type, tensor.sizes)
        except ValueError as error:
            raise _error(where, str(error)) from error
        is_fixed = tensor.shape_dynamism is fb.TensorShapeDynamism.STATIC
        has_strides = is_fixed or tensor.allocation_info is not None
        if has_strides and _greatest_stride(tensor) > _MAX_STRIDE:
            sizes = list(tensor.sizes)
            raise _error(where, f"its sizes {sizes} are too great: strides take 32 bits")
        if tensor.allocation_info is not None:
            self._planned(where, tensor.allocation_info, size)
        extra = tensor.extra_tensor_info
        if extra is not None and extra.location is fb.TensorDataLocation.EXTERNAL:
            if not extra.fully_qualified_name:
                raise _error(where, "an external tensor needs a name")
        elif tensor.data_buffer_idx:
            planned = tensor.allocation_info is not None
            what, parts = (
                ("mutable_data", self._mutable) if planned else ("constants", self._constants)
            )
            index = tensor.data_buffer_idx
            if index >= len(parts):
                raise _error(where, f"its data is {what}[{index}] of {len(parts)}")
            if parts[index] < size:
                raise _error(where, f"it takes {size} bytes, {what}[{index}] has {parts[index]}")

    def _planned(self, where: str, place: fb.AllocationDetails, size: int) -> None:
        arenas = self._plan.non_const_buffer_sizes
        if not 1 <= place.memory_id < len(arenas):
            raise _error(
                where, f"its memory id is {place.memory_id}, arenas are 1 to {len(arenas) - 1}"
            )
        end = _offset(place) + size
        if end > arenas[place.memory_id]:
            raise _error(
                where,
                f"it ends at byte {end} of arena {place.memory_id}, "
                f"which has {arenas[place.memory_id]}",
            )

    def _instruction(self, where: str, call: fb.InstructionArguments, count: int) -> None:
        plan = self._plan
        if isinstance(call, fb.KernelCall):
            if not 0 <= call.op_index < len(plan.operators):
                raise _error(where, f"operator {call.op_index} of {len(plan.operators)}")
            self._indices(where, call.args)
        elif isinstance(call, fb.DelegateCall):
            if not 0 <= call.delegate_index < len(plan.delegates):
                raise _error(where, f"delegate {call.delegate_index} of {len(plan.delegates)}")
            self._indices(where, call.args)
            if plan.delegates[call.delegate_index].id == XNNPACK_ID:
                self._overread(where, call.args)
        elif isinstance(call, fb.MoveCall):
            self._indices(where, (call.move_from, call.move_to))
        elif isinstance(call, fb.JumpFalseCall):
            self._indices(where, (call.cond_value_index,))
            if not 0 <= call.destination_instruction <= count:
                to = call.destination_instruction
                raise _error(where, f"it jumps to {to}, there are {count} instructions")
        else:
            self._indices(where, (call.value_index,))

    def _overread(self, where: str, args: Iterable[int]) -> None:
        """Check that XNNPACK may read beyond each planned tensor without leaving its arena."""
        for index in args:
            value = self._plan.values[index].val
            if not isinstance(value, fb.Tensor) or value.allocation_info is None:
                continue
            place = value.allocation_info
            end = _offset(place) + tensor_bytes(value.scalar_type, value.sizes)
            room = self._plan.non_const_buffer_sizes[place.memory_id] - end
            if room < XNNPACK_OVERREAD:
                raise _error(
                    where,
                    f"XNNPACK may read {XNNPACK_OVERREAD} bytes beyond value {index}, but its "
                    f"arena ends {room} bytes after it; make the arena larger",
                )

    def _indices(self, where: str, indices: Iterable[int]) -> None:
        count = len(self._plan.values)
        for index in indices:
            if not 0 <= index < count:
                raise _error(where, f"it refers to value {index}, there are {count}")


def _greatest_stride(tensor: fb.Tensor) -> int:
    """The stride of the outermost dimension, in elements; a size of 0 counts as 1."""
    return math.prod(max(tensor.sizes[dim], 1) for dim in tensor.dim_order[1:])


def _offset(place: fb.AllocationDetails) -> int:
    return place.memory_offset_low | place.memory_offset_high << 32


def _error(where: str, what: str) -> ExportError:
    return ExportError(what, code=Code.INVALID_PROGRAM, where=where)
