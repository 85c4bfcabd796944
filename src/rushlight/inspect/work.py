"""The work of a program's operators, operations and bytes, computed from the sizes in the file."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.errors import Error
from rushlight.inspect.kernel_work import actual_of, kernel_work
from rushlight.inspect.model import Actual, Value, Work
from rushlight.inspect.origin import Row, delegate_rows, unique_sources
from rushlight.inspect.payloads import PayloadNode, joined, nodes_of
from rushlight.inspect.program import methods_of
from rushlight.runtime.stepping import Stepper
from rushlight.schema.codec import Buffer
from rushlight.serialize.segments import as_bytes


@dataclass(slots=True)
class InstructionWork:
    """The work of an instruction, and of the nodes of a delegate by the ids in its events."""

    whole: Work
    nodes: dict[str, PayloadNode] = field(default_factory=dict)

    @property
    def inside(self) -> dict[str, Work]:
        """The work of each node by itself."""
        return {place: node.work for place, node in self.nodes.items()}

    def timed(self, places: Collection[str]) -> dict[str, Work]:
        """The work of each of these nodes, with that of the nodes that are timed with it."""
        return joined(self.nodes, places)


Sizes = Mapping[str, Mapping[int, Actual]]
"""The dynamic sizes and numbers in a run, by method and index of the value."""


def work_of(
    source: str | os.PathLike[str] | Buffer, sizes: Sizes | None = None
) -> dict[str, list[InstructionWork]]:
    """The work of every instruction of a program.

    Args:
        source: a path, or the bytes of the file.
        sizes: the known dynamic sizes.

    Returns:
        The work by method (and form of a fat program), and by index of the instruction.

    Raises:
        LoadError: the file cannot be read, or is damaged.
    """
    pte, methods, debug = methods_of(source)
    works_by_method = {}
    for plan, method in zip(pte.program.execution_plan, methods, strict=True):
        _set_sizes(method.values, (sizes or {}).get(method.name, {}))
        works = []
        for instruction in method.instructions:
            if instruction.kind != "delegate":
                works.append(InstructionWork(kernel_work(instruction, method.values)))
                continue
            delegate = plan.delegates[instruction.delegate]
            payload = pte.delegate_blobs[delegate.processed.index]
            actual = [actual_of(method.values[i]) for i in instruction.args]
            rows = delegate_rows(debug.method(method.name), instruction.delegate)
            nodes = _with_rows(nodes_of(delegate.id, as_bytes(payload), actual), rows)
            works.append(InstructionWork(Work(instruction.op), nodes))
        works_by_method[method.name] = works
    return works_by_method


def sizes_of_run(
    source: str | os.PathLike[str] | Buffer, method: str, inputs: Sequence[Any], data: Any = None
) -> dict[int, Actual]:
    """The dynamic sizes and numbers of a method on these inputs, from a run made for this purpose;
    empty if there are none, or if the run fails.

    Args:
        source: a path, or the bytes of the file.
        method: the method's name.
        inputs: the flattened inputs, as `rushlight.runtime.stepping.Stepper` takes them.
        data: a data file, as for `rushlight.load`.
    """
    _, methods, _ = methods_of(source)
    [values] = [one.values for one in methods if one.name == method]
    varying = {i for i, value in enumerate(values) if value.dynamic or value.kind == "int"}
    if not any(value.dynamic for value in values):
        return {}
    [instructions] = [one.instructions for one in methods if one.name == method]
    sizes: dict[int, Actual] = {}
    try:
        stepper = Stepper(source, method, inputs, data=data)
        for index in stepper:
            instruction = instructions[index]
            for i in varying.intersection((*instruction.args, *instruction.reads)):
                value = stepper.value(i)
                if value is not None:
                    sizes[i] = value if isinstance(value, int) else tuple(value.shape)
    except Error:
        return {}
    return sizes


def _set_sizes(values: Sequence[Value], sizes: Mapping[int, Actual]) -> None:
    """Replace dynamic sizes and numbers, in place, by the known ones."""
    for i, actual in sizes.items():
        value = values[i]
        if isinstance(actual, int):
            value.text = str(actual)
            continue
        element = value.bytes // max(math.prod(value.shape), 1)
        value.shape, value.dynamic = list(actual), False
        value.bytes = element * math.prod(actual)


def flops_of(source: str | os.PathLike[str] | Buffer, method: str = "forward") -> int:
    """Operations of all products, convolutions and attention that a method runs."""
    total = 0
    for work in work_of(source)[method]:
        total += sum(w.flops or 0 for w in (work.whole, *work.inside.values()))
    return total


def _with_rows(
    nodes: Sequence[PayloadNode], rows: Mapping[str, Sequence[Row]]
) -> dict[str, PayloadNode]:
    """The nodes of a delegate by the ids in its events, with the model's operators and lines; nodes
    of a backend whose payloads cannot be read have no work."""
    by_id = {str(i): node for i, node in enumerate(nodes)}
    for place, listed in rows.items():
        work = by_id.setdefault(place, PayloadNode(Work(place))).work
        work.nodes = list(dict.fromkeys(row.name for row in listed))
        work.sources = unique_sources(listed)
    return by_id
