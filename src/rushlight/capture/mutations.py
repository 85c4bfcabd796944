"""The inputs that a captured program writes: a program does not change its caller's tensors."""

from __future__ import annotations

import operator

from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from rushlight.capture.contract import input_paths
from rushlight.ir.findings import Finding
from rushlight.ir.source import Source, source_of


def mutated_inputs(program: ExportedProgram) -> list[Finding]:
    """The inputs that a program of the ATen dialect writes, each with the line.

    A write through views, those that `chunk` or `unbind` give included, is one too.
    """
    paths = input_paths(program)
    written = [(n, base_of(value)) for n in program.graph.nodes for value in _written(n)]
    found = [(base.name, source_of(n)) for n, base in written if isinstance(base, Node)]
    nodes = {node.name: node for node in program.graph.nodes}
    for spec in program.graph_signature.output_specs:
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            node = nodes.get(spec.arg.name)
            found.append((str(spec.target), source_of(node) if node else Source()))
    return [mutated_input(paths[name], source) for name, source in found if name in paths]


def mutated_input(name: str, source: Source) -> Finding:
    """The finding for one input, by the name that the user has for it."""
    return Finding(
        "mutated-input",
        f"the model writes its input {name!r}, and a program does not change its caller's tensors",
        f"Work on a copy, {name} = {name}.clone(), or use the operator without the underscore, "
        f"and return the new value",
        source,
    )


def _written(node: Node) -> list[object]:
    """The arguments that a call of an operator writes."""
    if not isinstance(node.target, OpOverload):
        return []
    arguments = node.target._schema.arguments
    given = {a.name: v for a, v in zip(arguments, node.args, strict=False)} | node.kwargs
    written = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    return [given[name] for name in written if name in given]


def base_of(value: object) -> object:
    """What a chain of views is of; the value itself if it is no view."""
    while isinstance(value, Node) and _returns_alias(value):
        value = value.args[0]
    return value


def _returns_alias(node: Node) -> bool:
    """Whether the result is the first argument, a view of it, or one of the views that it holds."""
    if node.target is operator.getitem:
        return isinstance(node.args[0], Node) and _returns_alias(node.args[0])
    if not isinstance(node.target, OpOverload) or not node.args:
        return False
    return any(result.alias_info is not None for result in node.target._schema.returns)
