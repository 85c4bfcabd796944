"""What the operators of a program do: operations and bytes, as far as the file's sizes tell."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.errors import Error
from rushlight.inspect.model import Actual, Instruction, Value, Work
from rushlight.inspect.origin import Row, delegate_rows, unique_sources
from rushlight.inspect.payloads import PayloadNode, joined, nodes_of
from rushlight.inspect.program import methods_of
from rushlight.runtime.stepping import Stepper
from rushlight.schema.codec import Buffer
from rushlight.serialize.segments import as_bytes

# Products: the positions of the left and of the right matrix [..., depth, columns].
_PRODUCTS = {
    "aten::mm": (0, 1),
    "aten::bmm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::baddbmm": (1, 2),
}
_TRANSPOSED = 6  # among the arguments of a convolution


@dataclass(slots=True)
class InstructionWork:
    """The work of an instruction, and of the steps of a delegate by the id that events name."""

    whole: Work
    steps: dict[str, PayloadNode] = field(default_factory=dict)

    @property
    def inside(self) -> dict[str, Work]:
        """Each step by itself."""
        return {place: step.work for place, step in self.steps.items()}

    def timed(self, places: Collection[str]) -> dict[str, Work]:
        """What is done under each of these places: what else leads there is done with it."""
        return joined(self.steps, places)


Sizes = Mapping[str, Mapping[int, Actual]]
"""By method and index of the value: those that vary, as they were in a run."""


def work_of(
    source: str | os.PathLike[str] | Buffer, sizes: Sizes | None = None
) -> dict[str, list[InstructionWork]]:
    """The work of every instruction of a program.

    Args:
        source: a path, or the bytes of the file.
        sizes: of values that vary; what is not among them is unknown.

    Returns:
        For each method (of a fat program: each method of each form), by index of the instruction.

    Raises:
        LoadError: the file cannot be read, or is damaged.
    """
    pte, methods, debug = methods_of(source)
    found = {}
    for plan, method in zip(pte.program.execution_plan, methods, strict=True):
        _set_sizes(method.values, (sizes or {}).get(method.name, {}))
        works = []
        for instruction in method.instructions:
            if instruction.kind != "delegate":
                works.append(InstructionWork(_kernel_work(instruction, method.values)))
                continue
            delegate = plan.delegates[instruction.delegate]
            payload = pte.delegate_blobs[delegate.processed.index]
            actual = [_actual(method.values[i]) for i in instruction.args]
            rows = delegate_rows(debug.method(method.name), instruction.delegate)
            steps = _with_rows(nodes_of(delegate.id, as_bytes(payload), actual), rows)
            works.append(InstructionWork(Work(instruction.op), steps))
        found[method.name] = works
    return found


def sizes_of_run(
    source: str | os.PathLike[str] | Buffer, method: str, inputs: Sequence[Any], data: Any = None
) -> dict[int, Actual]:
    """What the values of a method that vary are in a run on these inputs, which is made for it
    instruction by instruction; empty if none does, or if it fails.

    Args:
        source: a path, or the bytes of the file.
        method: its name.
        inputs: flattened, as `rushlight.runtime.stepping.Stepper` takes them.
        data: a data file, as for `rushlight.load`.
    """
    _, methods, _ = methods_of(source)
    [values] = [one.values for one in methods if one.name == method]
    varying = {i for i, value in enumerate(values) if value.dynamic or value.kind == "int"}
    if not any(value.dynamic for value in values):
        return {}
    [instructions] = [one.instructions for one in methods if one.name == method]
    found: dict[int, Actual] = {}
    try:
        stepper = Stepper(source, method, inputs, data=data)
        for index in stepper:
            instruction = instructions[index]
            for i in varying.intersection((*instruction.args, *instruction.reads)):
                value = stepper.value(i)
                if value is not None:
                    found[i] = value if isinstance(value, int) else tuple(value.shape)
    except Error:
        return {}
    return found


def _set_sizes(values: Sequence[Value], sizes: Mapping[int, Actual]) -> None:
    """Put what is known in place of what varies."""
    for i, actual in sizes.items():
        value = values[i]
        if isinstance(actual, int):
            value.text = str(actual)
            continue
        element = value.bytes // max(math.prod(value.shape), 1)
        value.shape, value.dynamic = list(actual), False
        value.bytes = element * math.prod(actual)


def _actual(value: Value) -> Actual | None:
    """What a value is in a run; None if it is not known."""
    if value.kind == "int":
        return int(value.text)
    return None if value.kind != "tensor" or value.dynamic else tuple(value.shape)


def flops_of(source: str | os.PathLike[str] | Buffer, method: str = "forward") -> int:
    """Operations of all products, convolutions and attention that a method runs."""
    total = 0
    for work in work_of(source)[method]:
        total += sum(w.flops or 0 for w in (work.whole, *work.inside.values()))
    return total


def _with_rows(
    steps: Sequence[PayloadNode], rows: Mapping[str, Sequence[Row]]
) -> dict[str, PayloadNode]:
    """The steps of a delegate by the id that its events have, with the nodes that they come from;
    those of other backends have no sizes."""
    found = {str(i): step for i, step in enumerate(steps)}
    for place, nodes in rows.items():
        work = found.setdefault(place, PayloadNode(Work(place))).work
        work.nodes = list(dict.fromkeys(node.name for node in nodes))
        work.sources = unique_sources(nodes)
    return found


def _kernel_work(instruction: Instruction, values: Sequence[Value]) -> Work:
    """Bytes are those of all tensors that it is given; unknown where a size may vary."""
    source = instruction.source
    work = Work(instruction.op, sources=[] if source is None else [source])
    if instruction.kind != "kernel":
        return work
    tensors = [values[i] for i in dict.fromkeys((*instruction.reads, *instruction.writes))]
    if any(value.dynamic for value in tensors):
        return work
    work.bytes = sum(value.bytes for value in tensors)
    work.flops = _kernel_flops(instruction, values)
    return work


def _kernel_flops(instruction: Instruction, values: Sequence[Value]) -> int | None:
    name = instruction.op.partition(".")[0]
    args = [values[i] for i in instruction.args]
    if name in _PRODUCTS:
        left, right = (args[i].shape for i in _PRODUCTS[name])
        return 2 * math.prod(left) * right[-1]
    if name == "aten::linear":
        return 2 * math.prod(args[0].shape) * args[1].shape[0]
    if name == "aten::convolution":
        transposed = args[_TRANSPOSED].text == "True"
        many = args[0 if transposed else instruction.args.index(instruction.writes[0])].shape
        weight = args[1].shape
        return 2 * math.prod(many) * math.prod(weight[1:])
    return None
