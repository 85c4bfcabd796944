"""Extracts a partition as a separate program, which is passed to `preprocess`."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node

from rushlight.errors import Code, ExportError
from rushlight.ir.branches import attribute, results_of
from rushlight.ir.programs import copy_node, make_module, make_program
from rushlight.ir.source import source_of
from rushlight.partition.partitioner import TAG
from rushlight.partition.regions import Region


@dataclass
class Data:
    """The parameters, buffers and constants of one graph.

    Attributes:
        specs: the signature's entry for each node.
        tensors: the tensors, by name.
        written: the buffers that the graph writes: {name: the node of the new value}.
        place: the position of each node among the data.
    """

    specs: dict[Node, InputSpec] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    written: dict[str, Node] = field(default_factory=dict)
    place: dict[Node, int] = field(default_factory=dict)

    def add(self, node: Node, spec: InputSpec) -> None:
        """Add a node and its entry of the signature."""
        self.specs[node] = spec
        self.place[node] = len(self.place)


def data_of(program: ExportedProgram) -> Data:
    """The data of a method's own graph."""
    signature = program.graph_signature
    specs = {spec.arg.name: spec for spec in signature.input_specs}
    data = Data(tensors={**program.constants, **program.state_dict})
    for node in program.graph.nodes:
        if node.op == "placeholder" and specs[node.name].kind != InputKind.USER_INPUT:
            data.add(node, specs[node.name])
    returned = program.graph.output_node().args[0]
    for spec, node in zip(signature.output_specs, returned, strict=True):
        if spec.kind == OutputKind.BUFFER_MUTATION:
            data.written[str(spec.target)] = node
    return data


def data_of_branch(module: GraphModule) -> Data:
    """The data of a branch of control flow: the tensors that its module holds."""
    data = Data()
    for node in module.graph.nodes:
        if node.op == "get_attr" and isinstance(value := attribute(node), torch.Tensor):
            name = str(node.target)
            arg = TensorArgument(node.name)
            data.add(node, InputSpec(InputKind.CONSTANT_TENSOR, arg, target=name))
            data.tensors[name] = value
    return data


@dataclass
class Part:
    """A partition that was extracted from its graph.

    Attributes:
        region: its nodes.
        program: the partition as a program.
        inputs: the nodes outside whose values it reads, in the order of the program's user inputs.
        outputs: its nodes that are used outside, in the order of the program's user outputs.
        written: the buffers that it owns and writes.
    """

    region: Region
    program: ExportedProgram
    inputs: list[Node]
    outputs: list[Node]
    written: set[str]


def extract(region: Region, data: Data, parent: ExportedProgram, method: str) -> Part:
    """Extract one partition; its graph is not changed.

    Args:
        region: the nodes of the partition.
        data: the data of the partition's graph.
        parent: the program of the method that it is in.
        method: the method's name, for messages.

    Raises:
        ExportError: if it owns a buffer that is also used outside, or returns a number.
    """
    members = set(region.nodes)
    used = dict.fromkeys(n for m in region.nodes for n in m.all_input_nodes if n not in members)
    owned = [n for n in used if n in data.specs and TAG in n.meta]
    owned.sort(key=data.place.__getitem__)  # a signature keeps the order of the method's
    written = _written_buffers(region, owned, data, method)
    placed = set(owned)
    inputs = [n for n in used if n not in placed and not _is_module(n)]
    kept = Counter(data.written[buffer] for buffer in written)
    outputs = [n for n in region.nodes if _leaves(n, members, kept)]
    for node in outputs:
        if not isinstance(node.meta.get("val"), torch.Tensor):
            raise ExportError(
                f"{region} hands out {node.name} ({node.target}; {source_of(node)}), which is not "
                f"a tensor: leave nodes that compute sizes and numbers out of the partition",
                code=Code.INVALID_ARGUMENT,
                where=method,
                sources=[source_of(node)],
            )
    writer = _Writer(data)
    for node in owned:
        writer.own(node)
    for node in inputs:
        writer.take(node)
    for node in filter(_is_module, used):
        writer.hold(node)
    for node in region.nodes:
        writer.copy(node)
    signature = writer.give([data.written[name] for name in written], written, outputs)
    program = make_program(
        parent,
        make_module(writer.held, writer.graph, parent.graph_module),
        signature,
        {str(data.specs[n].target): data.tensors[str(data.specs[n].target)] for n in owned},
    )
    return Part(region, program, inputs, outputs, set(written))


class _Writer:
    """Writes the graph and the signature of an extracted partition."""

    def __init__(self, data: Data) -> None:
        self.graph = Graph()
        self.held: dict[str, Any] = {}
        self._data = data
        self._env: dict[Node, Node] = {}
        self._inputs: list[InputSpec] = []

    def own(self, node: Node) -> None:
        """Add a parameter, buffer or constant."""
        spec = self._data.specs[node]
        arg = TensorArgument(self._placeholder(node).name)
        self._inputs.append(InputSpec(spec.kind, arg, spec.target, spec.persistent))

    def take(self, node: Node) -> None:
        """Add an input."""
        new = self._placeholder(node)
        value = node.meta.get("val")
        is_number = isinstance(value, torch.SymInt | int) and not isinstance(value, bool)
        arg: Any = SymIntArgument(new.name) if is_number else TensorArgument(new.name)
        self._inputs.append(InputSpec(InputKind.USER_INPUT, arg, None))

    def _placeholder(self, node: Node) -> Node:
        if node.op == "placeholder":
            new = copy_node(self.graph, node)
        else:
            new = self.graph.placeholder(node.name)
            new.meta = dict(node.meta)
        new.meta.pop(TAG, None)
        self._env[node] = new
        return new

    def hold(self, node: Node) -> None:
        """Add a branch of control flow, or a lowered module."""
        self._env[node] = copy_node(self.graph, node)
        self.held[str(node.target)] = attribute(node)

    def copy(self, node: Node) -> None:
        """Add a call."""
        self._env[node] = copy_node(self.graph, node, self._env)
        self._env[node].meta.pop(TAG, None)

    def give(
        self, new_values: list[Node], buffers: list[str], outputs: list[Node]
    ) -> ExportGraphSignature:
        """Add the output: the new values of buffers, then the results that are used outside."""
        values = [self._env[node] for node in [*new_values, *outputs]]
        self.graph.output(tuple(values))
        specs = []
        for i, value in enumerate(values):
            kind, target = OutputKind.USER_OUTPUT, None
            if i < len(buffers):
                kind, target = OutputKind.BUFFER_MUTATION, buffers[i]
            specs.append(OutputSpec(kind, TensorArgument(value.name), target))
        return ExportGraphSignature(self._inputs, specs)


def _is_module(node: Node) -> bool:
    """True for a branch of control flow or a lowered module; these are copied to their users."""
    return node.op == "get_attr" and not isinstance(attribute(node), torch.Tensor)


def _leaves(node: Node, members: set[Node], kept: Counter[Node]) -> bool:
    """Whether something outside uses the node's value; a new value of an owned buffer stays inside.

    Args:
        node: a node of the partition.
        members: all nodes of the partition.
        kept: for each new value of buffers, the number of owned buffers that get it.
    """
    outside = [u for u in node.users if u not in members]
    if not outside or any(u.target is operator.getitem for u in node.users):
        return False
    if node not in kept or any(u.op != "output" for u in outside):
        return True
    return results_of(node.graph).count(node) > kept[node]


def _written_buffers(region: Region, owned: list[Node], data: Data, method: str) -> list[str]:
    """The buffers that the partition owns and writes."""
    names = []
    members = set(region.nodes)
    for node in owned:
        name = str(data.specs[node].target)
        users = set(node.users) - members
        if node.meta.get("no_copy") and users:
            reason = "meta['no_copy'] forbids a copy of"
            raise _shared(region, node, users, "its constant", reason, method)
        if name not in data.written:
            continue
        new = data.written[name]
        if users or new not in members:
            what = users or {new}
            raise _shared(region, node, what, "the buffer", "state has one owner; it is", method)
        names.append(name)
    return names


def _shared(
    region: Region, node: Node, users: set[Node], what: str, why: str, method: str
) -> ExportError:
    names = ", ".join(sorted(f"{u.name} ({u.target})" for u in users))
    return ExportError(
        f"{region} owns {what} {node.name}, which is used outside of it by {names}; {why} "
        f"{node.name}: tag these nodes too, or leave {node.name} untagged",
        code=Code.INVALID_ARGUMENT,
        where=method,
        sources=[source_of(user) for user in sorted(users, key=lambda n: n.name)],
    )
