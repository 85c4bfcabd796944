"""Programs, graphs and nodes as text."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, TextIO

from torch.fx import Graph, Node

from rushlight.schema import program as schema

_POINTER = "-->"


def add_cursor_to_graph(graph: Graph, finding_node: Node) -> str:
    """The graph, a node a line, with an arrow before one of them."""
    lines = ["graph():"]
    for node in graph.nodes:
        told = node.format_node()
        if told:
            lines.append(f"{_POINTER if node is finding_node else '   '} {told}")
    return "\n".join(lines)


def inspect_node(graph: Graph, node: Node) -> str:
    """The graph with an arrow before the node, and the lines of Python that it came from."""
    trace = node.meta.get("stack_trace")
    told = f"\nTraceback (most recent call last):\n{trace}" if trace else ""
    return f"{add_cursor_to_graph(graph, node)}\n{told}"


def pretty_print(obj: Any, indent: int = 0, out: TextIO | None = None) -> None:
    """Print a value of the schema with its fields, each on a line; bytes as their number."""
    target = out or sys.stdout
    print(_text(obj, indent), file=target)


def _text(value: Any, indent: int) -> str:
    inner, pad = "  " * (indent + 1), "  " * indent
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if dataclasses.is_dataclass(value):
        named = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
        lines = "".join(f"{inner}{name}={_text(v, indent + 1)},\n" for name, v in named)
        return f"{type(value).__name__}(\n{lines}{pad})"
    if isinstance(value, list | tuple) and any(map(dataclasses.is_dataclass, value)):
        told = [f"{inner}{_text(v, indent + 1)},  # {i}\n" for i, v in enumerate(value)]
        return f"[\n{''.join(told)}{pad}]"
    return str(value) if not isinstance(value, str) else repr(value)


def print_program(
    program: schema.Program,
    show_meminfo: bool = True,
    mark_dynamic_shape_tensor: bool = False,
    out: TextIO | None = None,
) -> None:
    """Print the instructions of a program, one a line, with the values that each takes.

    Args:
        program: of the schema.
        show_meminfo: tell where each tensor lies.
        mark_dynamic_shape_tensor: tell which sizes are bounds.
        out: where to; standard output by default.
    """
    target = out or sys.stdout
    for plan in program.execution_plan:
        print(f"method {plan.name}: inputs {plan.inputs}, outputs {plan.outputs}", file=target)

        def value(i: int, plan: schema.ExecutionPlan = plan) -> str:
            told = _value(plan.values[i].val, show_meminfo, mark_dynamic_shape_tensor)
            return f"%{i}:{told}"

        for chain in plan.chains:
            for number, instruction in enumerate(chain.instructions):
                print(f"  {number}: {_instruction(instruction, plan, value)}", file=target)


def pretty_print_stacktraces(obj: schema.FrameList) -> str:
    """The Python lines that one instruction was made from, as Python shows a traceback."""
    lines = ["Traceback (most recent call last):"]
    for frame in obj.items:
        lines.append(f'    File "{frame.filename}", line {frame.lineno}, in {frame.name}')
        lines.append(frame.context)
    return "\n".join(lines) + "\n"


def _instruction(instruction: schema.Instruction, plan: schema.ExecutionPlan, value: Any) -> str:
    call = instruction.instr_args
    if isinstance(call, schema.KernelCall):
        operator = plan.operators[call.op_index]
        name = f"{operator.name}.{operator.overload}" if operator.overload else operator.name
        return f"{name}({', '.join(map(value, call.args))})"
    if isinstance(call, schema.DelegateCall):
        name = plan.delegates[call.delegate_index].id
        return f"delegate {name}({', '.join(map(value, call.args))})"
    if isinstance(call, schema.MoveCall):
        return f"move {value(call.move_from)} to %{call.move_to}"
    if isinstance(call, schema.JumpFalseCall):
        return f"jump to {call.destination_instruction} if not {value(call.cond_value_index)}"
    return str(call)


def _value(val: Any, show_meminfo: bool, mark_dynamic: bool) -> str:
    if not isinstance(val, schema.Tensor):
        return str(getattr(val, "string_val", None) or _plain(val))
    is_dynamic = val.shape_dynamism != schema.TensorShapeDynamism.STATIC
    bound = "<=" if mark_dynamic and is_dynamic else ""
    told = f"{schema.ScalarType(val.scalar_type).name}{bound}{list(val.sizes)}"
    place = val.allocation_info
    if show_meminfo and place is not None:
        offset = place.memory_offset_low | place.memory_offset_high << 32
        told += f"@{place.memory_id}+{offset}"
    elif show_meminfo and val.data_buffer_idx:
        told += f" constant {val.data_buffer_idx}"
    return told


def _plain(val: Any) -> Any:
    fields = dataclasses.fields(val) if dataclasses.is_dataclass(val) else ()
    return getattr(val, fields[0].name) if len(fields) == 1 else val
