"""The engine's graph that the cpu backend makes from a small function, as text.

It shows the result of the last stages of the engine's compiler together: clusters and their tile
programs, the builder, and the passes over its graph.
"""

from __future__ import annotations

import struct
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any

import torch
from pass_text import WIDTH, traced

from rushlight.backends.cpu.preprocess import CpuBackend
from rushlight.edge.constants import Constants
from rushlight.edge.passes.scalar_to_tensor import scalar_to_tensor
from rushlight.edge.passes.views_to_copies import views_to_copies
from rushlight.schema import cpu_engine as fb

# Instructions that read three registers, and those with a number.
_THREE = {fb.TileOp.MUL_ADD, fb.TileOp.WHERE}
_WITH_VALUE = {"ADD_VALUE", "MUL_VALUE", "MIN_VALUE", "MAX_VALUE", "ELU"}


def payload(
    function: Callable[..., Any], *args: torch.Tensor, dynamic: bool = False, **constants: Any
) -> fb.Graph:
    """The payload of `function`, called with the arguments and then the constants by name."""
    program = traced(function, *args, dynamic=dynamic, **constants)
    views_to_copies(program.graph)
    own = Constants(program)
    scalar_to_tensor(own)
    own.drop_unused()
    graph: fb.Graph = fb.unpack(CpuBackend.preprocess(program, []).processed_bytes)
    return graph


def payload_text(graph: fb.Graph) -> str:
    """The text of a payload: values with their offsets and strides, then the nodes in order."""
    lines = [f"v{i}: {_value(value)}" for i, value in enumerate(graph.values)]
    for node in graph.nodes:
        text = _operation(node.operation)
        if node.outputs:
            inputs = ", ".join("none" if i < 0 else f"v{i}" for i in node.inputs)
            text = f"{', '.join(f'v{i}' for i in node.outputs)} = {text} of {inputs}"
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False)
        program = getattr(node.operation, "program", None)
        epilogue = getattr(node.operation, "epilogue", None)
        lines += _instructions(program or (epilogue and epilogue.program))
    return "\n".join(lines) + f"\nscratch: {graph.scratch_size} bytes\n"


def _value(value: fb.Value) -> str:
    sizes = ", ".join(map(str, value.sizes))
    strides = ", ".join(map(str, value.strides))
    place = "scratch" if value.place is fb.Place.SCRATCH else f"{value.place.name.lower()} "
    at = f" at {value.offset}" if value.place is fb.Place.SCRATCH or value.offset else ""
    index = "" if value.place is fb.Place.SCRATCH else str(value.index)
    return f"{value.dtype.name.lower()}[{sizes}] strides [{strides}], {place}{index}{at}"


def _operation(operation: Any) -> str:
    """The type of an operation, and the fields that do not have their defaults."""
    told = []
    for f in fields(operation):
        value = getattr(operation, f.name)
        default = f.default if f.default_factory is MISSING else f.default_factory()
        if value != default and not isinstance(value, fb.TileProgram):
            told.append(f"{f.name}={_told(value)}")
    return f"{type(operation).__name__}({', '.join(told)})"


def _told(value: Any) -> str:
    if is_dataclass(value):
        return _operation(value)
    if isinstance(value, Enum):
        return value.name
    return format(value, ".6g") if isinstance(value, float) else str(value)


def _instructions(program: fb.TileProgram | None) -> list[str]:
    if program is None:
        return []
    operands = [f"v{i}" for i in program.operands]
    return [
        "    " + _instruction(*program.code[at : at + 3], operands)
        for at in range(0, len(program.code), 3)
    ]


def _instruction(word: int, c: int, bits: int, operands: list[str]) -> str:
    op, out, a, b = fb.TileOp(word & 0xFF), word >> 8 & 0xFF, word >> 16 & 0xFF, word >> 24 & 0xFF
    [number] = struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))
    if op is fb.TileOp.LOAD:
        return f"r{out} = {operands[a]}"
    if op is fb.TileOp.STORE:
        return f"{operands[out]} = r{a}"
    if op is fb.TileOp.CONSTANT:
        return f"r{out} = {number:.6g}"
    read = [f"r{a}"]
    if fb.TileOp.ADD <= op <= fb.TileOp.OR or op in _THREE:
        read.append(f"r{b}")
    if op in _THREE:
        read.append(f"r{c}")
    if op.name in _WITH_VALUE:
        read.append(f"{number:.6g}")
    return f"r{out} = {op.name}({', '.join(read)})"
