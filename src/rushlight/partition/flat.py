"""Turns a whole program into one that a delegate can compute: flat inputs, computed tensors out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export._tree_utils import reorder_kwargs
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
)
from torch.fx import Graph, GraphModule, Node

from rushlight.errors import Code, ExportError
from rushlight.ir.branches import attribute
from rushlight.ir.programs import copy_node, make_module, make_program
from rushlight.ir.source import source_of
from rushlight.schema.source import Source


@dataclass(frozen=True)
class Call:
    """Translates calls of a program into calls of the delegate that computes it.

    Attributes:
        inputs: the structure of the arguments.
        passed: the indices of the flat arguments that the delegate takes.
        results: the structure of the results.
        returned: for each flat result, `("computed", index of the delegate's output)`,
            `("passed", index of the flat argument)` or `("literal", value)`.
    """

    inputs: pytree.TreeSpec
    passed: list[int]
    results: pytree.TreeSpec
    returned: list[tuple[str, Any]]

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The flat arguments.

        Raises:
            ExportError: if their structure is not that of the example inputs.
        """
        try:
            ordered = reorder_kwargs(dict(kwargs), self.inputs)
        except (ValueError, KeyError) as error:
            raise _wrong_call(str(error)) from None
        flat, spec = pytree.tree_flatten((tuple(args), ordered))
        if spec != self.inputs:
            raise _wrong_call(f"they are {spec}, and were {self.inputs} in the example")
        return flat

    def assemble(self, computed: Sequence[Any], flat: Sequence[Any]) -> list[Any]:
        """The flat results, from the delegate's outputs and the flat arguments."""
        sources = {"computed": computed, "passed": flat}
        return [sources[kind][at] if kind in sources else at for kind, at in self.returned]


def _wrong_call(what: str) -> ExportError:
    return ExportError(
        f"a lowered module is called with other arguments than it was exported with: {what}",
        code=Code.INVALID_ARGUMENT,
    )


def flatten(program: ExportedProgram) -> tuple[ExportedProgram, Call]:
    """The program that a delegate computes, and the translation of its users' calls.

    Each value is one output even if it is returned twice. Arguments that are returned unchanged,
    and literals, are not outputs of the delegate.

    Args:
        program: of the Edge dialect; not changed.

    Raises:
        ExportError: if it returns a number that it computes, or writes to its arguments.
    """
    signature = program.graph_signature
    placeholders = program.graph.find_nodes(op="placeholder")
    flat = [
        node
        for node, spec in zip(placeholders, signature.input_specs, strict=True)
        if spec.kind == InputKind.USER_INPUT
    ]
    places = {node: i for i, node in enumerate(flat)}
    values: Any = program.graph.output_node().args[0]
    kept: dict[Any, Any] = {}
    numbers: dict[Node, int] = {}  # the index of each value in `kept`
    returned: list[tuple[str, Any]] = []
    written = []
    for spec, value in zip(signature.output_specs, values, strict=True):
        if spec.kind == OutputKind.BUFFER_MUTATION:
            written.append((spec, value))
            continue
        if spec.kind != OutputKind.USER_OUTPUT:
            raise _refused(f"writes to its argument {spec.target}, which delegates cannot")
        if not isinstance(value, Node):
            returned.append(("literal", value))
        elif value in places:
            returned.append(("passed", places[value]))
        else:
            if not isinstance(value.meta.get("val"), torch.Tensor):
                what = f"returns {value.name} ({value.target}; {source_of(value)})"
                raise _refused(
                    f"{what}, which is not a tensor: delegates hand out tensors only",
                    source_of(value),
                )
            numbers.setdefault(value, len(numbers))
            kept.setdefault(value, spec)
            returned.append(("computed", numbers[value]))
    constant = {s.arg.name for s in signature.input_specs if isinstance(s.arg, ConstantArgument)}
    inputs = [s for s in signature.input_specs if s.arg.name not in constant]
    outputs = [*written, *((spec, value) for value, spec in kept.items())]
    results = tuple(value for _, value in outputs)
    module = program.graph_module  # that of an extracted partition needs no change
    if constant or results != tuple(values):
        module = _copy(program, constant, results)
    new = make_program(
        program,
        module,
        ExportGraphSignature(inputs, [spec for spec, _ in outputs]),
        {**program.constants, **program.state_dict},
    )
    passed = [i for i, node in enumerate(flat) if node.name not in constant]
    call = program.module_call_graph[0].signature
    return new, Call(call.in_spec, passed, call.out_spec, returned)


def _refused(what: str, *sources: Source) -> ExportError:
    return ExportError(f"the program {what}", code=Code.NOT_SUPPORTED, sources=sources)


def _copy(program: ExportedProgram, without: set[str], returned: tuple[Node, ...]) -> GraphModule:
    graph = Graph()
    env: dict[Node, Node] = {}
    held = {}
    for node in program.graph.nodes:
        if node.op == "output":
            graph.output(tuple(env[value] for value in returned))
        elif node.name not in without:
            env[node] = copy_node(graph, node, env)
        if node.op == "get_attr":
            held[str(node.target)] = attribute(node)
    return make_module(held, graph, program.graph_module)
