"""Graphs that could be captured, as methods of a report, before there is a program."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node

from rushlight.inspect.model import Instruction, Method, Slot, Value
from rushlight.ir.branches import branch
from rushlight.ir.cost import cost_of
from rushlight.ir.findings import Finding
from rushlight.ir.source import operator_of, source_of
from rushlight.schema.source import Source

_ROLES = {
    InputKind.USER_INPUT: "input",
    InputKind.BUFFER: "state",
    InputKind.PARAMETER: "constant",
    InputKind.CONSTANT_TENSOR: "constant",
}


@dataclass(frozen=True)
class Captured:
    """A graph of a model, or of a part of it that was captured by itself.

    Attributes:
        program: in the Edge dialect if it could be brought there, else as it was captured.
        part: the path of the module; "" for the model.
        is_draft: whether it has the example's sizes and values where the model decides by them.
    """

    program: ExportedProgram
    part: str = ""
    is_draft: bool = False

    @property
    def name(self) -> str:
        """What sets it apart from the others of its method."""
        return self.part or ("draft" if self.is_draft else "")


def in_model(source: Source, part: str) -> Source:
    """A place in a part of a model, as one in the model. Debug handles are those of the model's
    graph, so that places in graphs of parts have none."""
    if not part:
        return source
    return replace(source, module=".".join(filter(None, (part, source.module))), handle=0)


def with_modules(findings: Iterable[Finding], graphs: Iterable[Captured]) -> list[Finding]:
    """The findings, those that know only a line with the one module whose calls are on it."""
    modules: dict[tuple[str, int], set[str]] = {}
    for graph in graphs:
        for node in graph.program.graph.nodes:
            source = in_model(source_of(node), graph.part)
            if source.file and node.op == "call_function":
                modules.setdefault((source.file, source.line), set()).add(source.module)
    placed = []
    for finding in findings:
        source = finding.source
        known = modules.get((source.file, source.line), set())
        if not source.module and len(known) == 1:
            finding = replace(finding, source=replace(source, module=min(known)))
        placed.append(finding)
    return placed


def method_of(name: str, graph: Captured) -> Method:
    """The graph as a method, with an instruction for each call and for each of its branches'."""
    writer = _Writer(graph)
    program = graph.program
    kinds = {spec.arg.name: spec.kind for spec in program.graph_signature.input_specs}
    inputs = []
    for node in program.graph.find_nodes(op="placeholder"):
        role = _ROLES.get(kinds.get(node.name, InputKind.USER_INPUT), "literal")
        [value] = writer.values_of(node, role)
        if role == "input":
            inputs.append(Slot(node.name, writer.values[value].text, value))
    writer.add(program.graph_module)
    outputs = [
        Slot(node.name, writer.values[value].text, value)
        for node in program.graph.output_node().all_input_nodes
        for value in writer.values_of(node)[:1]
    ]
    gives = ", ".join(slot.text for slot in outputs)
    takes = ", ".join(f"{slot.name}: {slot.text}" for slot in inputs)
    return Method(
        name=name,
        signature=f"{name}({takes}) -> {gives if len(outputs) == 1 else f'({gives})'}",
        weak=False,
        relations=[],
        inputs=inputs,
        outputs=outputs,
        values=writer.values,
        instructions=writer.instructions,
        arenas=[],
        delegates=[],
        constant_bytes=0,
        delegate_bytes=0,
        caller_bytes=0,
    )


class _Writer:
    """Collects the values and instructions of a graph and of its branches."""

    def __init__(self, graph: Captured) -> None:
        self._part = graph.part
        self._of: dict[Node, list[int]] = {}
        self.values: list[Value] = []
        self.instructions: list[Instruction] = []

    def values_of(self, node: Node, role: str = "temporary") -> list[int]:
        """The indices of what a node computes, one for each of its results."""
        if node not in self._of and node.target is operator.getitem:
            source, at = node.args[:2]
            results = self.values_of(source) if isinstance(source, Node) else []
            fits = isinstance(at, int) and -len(results) <= at < len(results)
            self._of[node] = [results[at]] if fits else results  # type: ignore[index]
        elif node not in self._of:
            results = pytree.tree_leaves(node.meta.get("val"))
            self._of[node] = [self._value(node.name, one, role) for one in results or [None]]
        return self._of[node]

    def _value(self, name: str, value: Any, role: str) -> int:
        if isinstance(value, torch.Tensor):
            dtype = str(value.dtype).removeprefix("torch.")
            made = Value(
                "tensor", name, f"{dtype}[{', '.join(map(str, value.shape))}]", role, dtype
            )
        else:
            made = Value(type(value).__name__.removeprefix("Sym").lower(), name, str(value), role)
        self.values.append(made)
        return len(self.values) - 1

    def add(self, module: GraphModule) -> None:
        """Add the calls of a graph, and those of its branches behind them."""
        for node in module.graph.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                self._call(node)
        for node in module.graph.nodes:
            inner = branch(node) if node.op == "get_attr" else None
            if inner is not None:
                self.add(inner)

    def _call(self, node: Node) -> None:
        reads = list(self._reads(node))
        writes = self.values_of(node)
        source = in_model(source_of(node), self._part)
        cost = 0.0
        if isinstance(node.target, torch._ops.OpOverload):
            cost = cost_of(node)
        op = operator_of(node)
        self.instructions.append(
            Instruction("kernel", op, node.name, reads + writes, reads, writes, source=source,
                        cost=cost)
        )  # fmt: skip

    def _reads(self, node: Node) -> Iterator[int]:
        for one in node.all_input_nodes:
            if one.op != "get_attr":
                yield from self.values_of(one)
