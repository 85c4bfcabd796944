"""The values of a method for a report: names, types, roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rushlight.errors import Code, LoadError
from rushlight.inspect.effects import is_external, is_named
from rushlight.inspect.model import Instruction, Value
from rushlight.inspect.origin import Signature
from rushlight.schema import program as fb
from rushlight.schema.sizes import dtype_name, tensor_bytes

_MAX_ITEMS = 8  # of a list that are written out


def describe_values(
    plan: fb.ExecutionPlan, signature: Signature | None, names: Mapping[int, str]
) -> list[Value]:
    """All values of a method; those that instructions compute have no name yet.

    Args:
        plan: the method.
        signature: the method's signature in the contract, if there is one.
        names: the known names of parameters and buffers, by index of the value.

    Raises:
        LoadError: a tensor has a negative size, or its arena does not exist or is too small.
    """
    known = dict(names)
    inputs = signature.names if signature else []
    for i, index in enumerate(plan.inputs):
        known[index] = inputs[i] if i < len(inputs) else f"input_{i}"
    values = [_describe(plan, i, known.get(i, "")) for i in range(len(plan.values))]
    for role, indices in (("output", plan.outputs), ("input", plan.inputs)):
        for index in indices:
            if values[index].memory_id:
                values[index].role = role
    return values


def _describe(plan: fb.ExecutionPlan, index: int, name: str) -> Value:
    value = plan.values[index].val
    if isinstance(value, fb.Tensor):
        return _tensor(plan, index, value, name)
    if isinstance(value, fb.Int):
        return Value("int", name, str(value.int_val))
    if isinstance(value, fb.Bool):
        return Value("bool", name, str(value.bool_val))
    if isinstance(value, fb.Double):
        return Value("double", name, repr(value.double_val))
    if isinstance(value, fb.String):
        return Value("string", name, repr(value.string_val))
    if isinstance(value, fb.Null):
        return Value("none", name, "None")
    return Value("list", name, _scalars_text(plan, value))


def _scalars_text(plan: fb.ExecutionPlan, value: fb.KernelTypes) -> str:
    """The items of a list of numbers or flags; "" for a list of tensors."""
    if isinstance(value, fb.DoubleList | fb.BoolList):
        return _cut([str(item) for item in value.items[: _MAX_ITEMS + 1]], len(value.items))
    if not isinstance(value, fb.IntList):
        return ""
    shown = []
    for item in value.items[: _MAX_ITEMS + 1]:
        inner = plan.values[item].val if 0 <= item < len(plan.values) else None
        shown.append(str(inner.int_val) if isinstance(inner, fb.Int) else f"value {item}")
    return _cut(shown, len(value.items))


def _cut(items: Sequence[str], total: int) -> str:
    """A list as text, "[1, 2, 3]", without the end of a long one."""
    more = [f"… {total - _MAX_ITEMS} more"] if total > _MAX_ITEMS else []
    return f"[{', '.join([*items[:_MAX_ITEMS], *more])}]"


def _tensor(plan: fb.ExecutionPlan, index: int, tensor: fb.Tensor, name: str) -> Value:
    where = f"{plan.name}: value {index}"
    try:
        size = tensor_bytes(tensor.scalar_type, tensor.sizes)
    except ValueError as error:
        raise _damaged(where, str(error)) from error
    dynamic = tensor.shape_dynamism is not fb.TensorShapeDynamism.STATIC
    bound = "≤" if dynamic else ""
    dtype = dtype_name(tensor.scalar_type)
    extra = tensor.extra_tensor_info
    value = Value(
        kind="tensor",
        name=(extra.fully_qualified_name if extra is not None else None) or name,
        text=f"{dtype}[{', '.join(f'{bound}{size}' for size in tensor.sizes)}]",
        role=_role(tensor),
        dtype=dtype,
        shape=list(tensor.sizes),
        bytes=size,
        dynamic=dynamic,
        constant=0 if is_external(tensor) else tensor.data_buffer_idx,
    )
    info = tensor.allocation_info
    if info is not None:
        value.memory_id = info.memory_id
        value.offset = info.memory_offset_low | info.memory_offset_high << 32
        _check_place(plan, value, where)
    return value


def _role(tensor: fb.Tensor) -> str:
    """The role of a tensor that is neither input nor output."""
    if tensor.allocation_info is None:
        if is_external(tensor):
            return "external"
        return "constant" if tensor.data_buffer_idx else "caller"
    return "state" if tensor.data_buffer_idx or is_named(tensor) else "temporary"


def _check_place(plan: fb.ExecutionPlan, value: Value, where: str) -> None:
    arenas = plan.non_const_buffer_sizes
    if not 1 <= value.memory_id < len(arenas):
        raise _damaged(where, f"it is in memory {value.memory_id}, there are {len(arenas) - 1}")
    end, size = value.offset + value.bytes, arenas[value.memory_id]
    if end > size:
        raise _damaged(where, f"it ends at byte {end} of memory {value.memory_id} ({size} bytes)")


def _damaged(where: str, what: str) -> LoadError:
    return LoadError(
        f"{what}; the file is damaged, export it again", code=Code.INVALID_PROGRAM, where=where
    )


def name_results(values: Sequence[Value], instructions: Sequence[Instruction]) -> None:
    """Give the results of instructions, in place, the instructions' names.

    A value that an instruction changes in place existed before and is not named after it.
    """
    for i, instruction in enumerate(instructions):
        base = instruction.name
        if not base:
            operator = instruction.op.partition("::")[2].partition(".")[0] or instruction.op
            base = f"{operator}_{i}"
        for k, index in enumerate(instruction.writes):
            if not values[index].name and index not in instruction.reads:
                values[index].name = base if len(instruction.writes) == 1 else f"{base}[{k}]"


def name_the_rest(
    plan: fb.ExecutionPlan, values: Sequence[Value], views: Mapping[int, int]
) -> None:
    """Name the remaining values in place: views after their base, constants by index, lists."""
    for view, base in views.items():
        values[view].base = base
        if not values[view].name and values[base].name:
            values[view].name = f"{values[base].name} (view)"
    for index, value in enumerate(values):
        if value.kind == "tensor" and not value.name:
            kind = "state" if value.role == "state" else "value"
            by_constant = f"constant {value.constant}"
            value.name = by_constant if value.role == "constant" else f"{kind} {index}"
    for value, stored in zip(values, plan.values, strict=True):
        if isinstance(stored.val, fb.TensorList | fb.OptionalTensorList):
            items = stored.val.items
            names = [
                values[item].name if 0 <= item < len(values) else "None"
                for item in items[: _MAX_ITEMS + 1]
            ]
            value.text = _cut(names, len(items))
