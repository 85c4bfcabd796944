"""Reads one method of a program for a report."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.errors import Code, LoadError
from rushlight.inspect.delegates import delegates_of
from rushlight.inspect.effects import Effect, check_index, effects_of, operator_name
from rushlight.inspect.kernel_work import cost_of, kernel_work
from rushlight.inspect.memory import arenas_of
from rushlight.inspect.model import Instruction, Method, Slot, Value
from rushlight.inspect.origin import Row, Signature, coverage_of, rows_of
from rushlight.inspect.values import describe_values, name_results, name_the_rest
from rushlight.schema import program as fb
from rushlight.schema.debug import DebugMethod
from rushlight.serialize.file import PTEFile
from rushlight.serialize.segments import as_bytes


def read_method(
    pte: PTEFile, plan: fb.ExecutionPlan, signature: Signature | None, debug: DebugMethod
) -> Method:
    """The report's view of one method.

    Args:
        pte: the method's program.
        plan: the method.
        signature: the signature in the contract; None makes one from the method's tensors.
        debug: the method's debug map; may be empty.

    Raises:
        LoadError: an index, a size or an offset is out of range.
    """
    _check(plan)
    effects = effects_of(plan)
    values = describe_values(plan, signature, debug.values)
    instructions = _instructions(plan, effects, rows_of(debug.instructions, plan))
    _set_work(instructions, values)
    name_results(values, instructions)
    arenas, views = arenas_of(plan, values, effects)
    blocks = [block for arena in arenas for block in arena.blocks]
    for block in blocks:
        if block.role == "state":
            values[block.value].role = block.role
    name_the_rest(plan, values, views)
    for block in blocks:
        block.name = values[block.value].name
    inputs = _slots(plan.inputs, values, signature.inputs if signature else [])
    outputs = _slots(plan.outputs, values, signature.outputs if signature else [])
    delegates = delegates_of(pte, plan, instructions, values, debug.delegates)
    lent = {slot.value for slot in (*inputs, *outputs) if values[slot.value].role == "caller"}
    return Method(
        name=plan.name,
        signature=_signature(plan.name, inputs, outputs, signature),
        weak=signature is None,
        relations=signature.relations if signature else [],
        inputs=inputs,
        outputs=outputs,
        values=values,
        instructions=instructions,
        arenas=arenas,
        delegates=delegates,
        constant_bytes=_bytes_of_constants(values),
        delegate_bytes=_bytes_of_payloads(pte, plan),
        caller_bytes=sum(values[i].bytes for i in lent),
        coverage=coverage_of(debug),
    )


def _check(plan: fb.ExecutionPlan) -> None:
    for what, indices in (("inputs", plan.inputs), ("outputs", plan.outputs)):
        for index in indices:
            check_index(index, len(plan.values), f"{plan.name}: {what}", "value")
    if len(plan.chains) > 1:
        raise LoadError(
            f"it has {len(plan.chains)} chains of instructions; programs have one, export it again",
            code=Code.NOT_SUPPORTED,
            where=plan.name,
        )
    if min(plan.non_const_buffer_sizes, default=0) < 0:
        raise LoadError(
            f"it has a memory of {min(plan.non_const_buffer_sizes)} bytes; the file is damaged, "
            f"export it again",
            code=Code.INVALID_PROGRAM,
            where=plan.name,
        )


def _instructions(
    plan: fb.ExecutionPlan, effects: Sequence[Effect], rows: Sequence[Row]
) -> list[Instruction]:
    instructions = []
    calls = plan.chains[0].instructions if plan.chains else []
    for call, effect, row in zip(calls, effects, rows, strict=True):
        instructions.append(_instruction(plan, call.instr_args, effect, row))
    return instructions


def _instruction(
    plan: fb.ExecutionPlan, call: fb.InstructionArguments, effect: Effect, row: Row
) -> Instruction:
    made = Instruction("free", "free", row.name, [], effect.reads, effect.writes, source=row.source)
    if isinstance(call, fb.KernelCall):
        made.kind, made.op = "kernel", operator_name(plan.operators[call.op_index])
        made.args = list(call.args)
    elif isinstance(call, fb.DelegateCall):
        made.kind, made.op = "delegate", plan.delegates[call.delegate_index].id
        made.args, made.delegate = list(call.args), call.delegate_index
    elif isinstance(call, fb.MoveCall):
        made.kind = made.op = "move"
        made.args = [call.move_from, call.move_to]
    elif isinstance(call, fb.JumpFalseCall):
        made.kind, made.op = "jump", "jump_if_false"
        made.args, made.target = [call.cond_value_index], call.destination_instruction
    else:
        made.args = [call.value_index]
    return made


def _set_work(instructions: Sequence[Instruction], values: Sequence[Value]) -> None:
    """Give each kernel call its work, as far as the file tells."""
    for instruction in instructions:
        work = kernel_work(instruction, values)
        instruction.flops, instruction.bytes = work.flops, work.bytes
        instruction.cost = cost_of(work)


def _slots(indices: Sequence[int], values: Sequence[Value], types: Sequence[str]) -> list[Slot]:
    known = len(types) == len(indices)
    slots = []
    for i, index in enumerate(indices):
        value = values[index]
        text = value.text if value.kind == "tensor" else f"{value.kind} = {value.text}"
        slots.append(Slot(value.name, types[i] if known else text, index))
    return slots


def _signature(
    name: str, inputs: Sequence[Slot], outputs: Sequence[Slot], known: Signature | None
) -> str:
    if known is not None and known.takes + known.gives:
        return f"{name}({known.takes}) -> {known.gives}"
    takes = ", ".join(f"{slot.name}: {slot.text}" for slot in inputs)
    gives = ", ".join(slot.text for slot in outputs)
    return f"{name}({takes}) -> {gives if len(outputs) == 1 else f'({gives})'}"


def _bytes_of_payloads(pte: PTEFile, plan: fb.ExecutionPlan) -> int:
    used = {delegate.processed.index for delegate in plan.delegates}
    return sum(len(as_bytes(pte.delegate_blobs[index])) for index in used)


def _bytes_of_constants(values: Sequence[Value]) -> int:
    """Bytes of all constants, each once, with the size of the largest tensor that shows it."""
    sizes: dict[tuple[str, str | int], int] = {}
    for value in values:
        if value.role in ("constant", "external"):
            key = (value.role, value.constant or value.name)
            sizes[key] = max(value.bytes, sizes.get(key, 0))
    return sum(sizes.values())
