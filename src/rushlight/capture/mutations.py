"""In-place writes of a captured program, and which of them are refused.

A program does not change its caller's tensors, and a branch of control flow does not change its
operands.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

import torch
import torch.utils._pytree as pytree
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Graph, Node

from rushlight.capture.contract import input_paths
from rushlight.capture.rewrites import RETURN_IT
from rushlight.ir.branches import branch, branches
from rushlight.ir.findings import Finding
from rushlight.ir.source import source_of
from rushlight.schema.source import Source

# Parts of a graph that only say how it is computed, as `with torch.no_grad()` does.
_BLOCKS = (
    torch.ops.higher_order.wrap_with_set_grad_enabled,
    torch.ops.higher_order.wrap_with_autocast,
)


def refused_writes(program: ExportedProgram) -> list[Finding]:
    """The forbidden writes of a program of the ATen dialect, each with its line."""
    return [*mutated_inputs(program), *mutated_operands(program)]


def mutated_inputs(program: ExportedProgram) -> list[Finding]:
    """The inputs that a program of the ATen dialect writes, each with its line.

    A write through a view, such as a result of `chunk` or `unbind`, counts too.
    """
    paths = input_paths(program)
    writes = [(base.name, source_of(n)) for n, base in written_values(program.graph)]
    nodes = {node.name: node for node in program.graph.nodes}
    for spec in program.graph_signature.output_specs:
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            node = nodes.get(spec.arg.name)
            writes.append((str(spec.target), source_of(node) if node else Source()))
    return [mutated_input(paths[name], source) for name, source in writes if name in paths]


def mutated_operands(program: ExportedProgram) -> list[Finding]:
    """The operands that functions of control flow write, each with its line."""
    specs = program.graph_signature.input_specs
    names = {s.arg.name: str(s.target) for s in specs if s.target is not None}
    names.update(input_paths(program))
    graphs = [program.graph, *(module.graph for module in branches(program.graph_module))]
    nodes = [n for g in graphs for n in g.nodes if n.target not in _BLOCKS]
    calls = [n for n in nodes if isinstance(n.target, HigherOrderOperator)]
    return [
        _mutated_operand(str(call.target), names.get(getattr(operand, "name", "")), write)
        for call in calls
        for operand, write in _written_operands(call)
    ]


def _written_operands(call: Node) -> Iterator[tuple[object, Node]]:
    """Each operand of a call of control flow that its functions write, with the write."""
    named = [i for i, arg in enumerate(call.args) if isinstance(arg, Node) and arg.op == "get_attr"]
    operands = pytree.tree_leaves(call.args[named[-1] + 1 :]) if named else []
    graphs = [branch(call.args[i]) for i in named]  # type: ignore[arg-type]
    for module in filter(None, graphs):
        operand_of = dict(zip(module.graph.find_nodes(op="placeholder"), operands, strict=False))
        for node, base in written_values(module.graph):
            if base.op == "placeholder":
                yield operand_of.get(base), node


def _mutated_operand(operator: str, name: str | None, write: Node) -> Finding:
    what = "a tensor from outside of it" if name is None else repr(name)
    return Finding(
        "mutated-input",
        f"a function that is given to {operator} writes {what} in place, and such a function can "
        f"only return values",
        RETURN_IT,
        source_of(write),
    )


def written_values(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Each call that writes in place, with the value that it writes, whole or through a view. For a
    block such as `with torch.no_grad()`, the calls inside it are listed."""
    for node in graph.nodes:
        writes = ((value, node) for value in _written(node))
        for value, write in _written_operands(node) if node.target in _BLOCKS else writes:
            base = base_of(value)
            if isinstance(base, Node):
                yield write, base


def written_state(program: ExportedProgram) -> set[str]:
    """The names of the parameters, buffers and constants that a program of the ATen dialect
    writes."""
    kinds = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
    signature = program.graph_signature
    targets = {spec.arg.name: spec.target for spec in signature.input_specs if spec.target}
    written = {
        targets[base.name] for _, base in written_values(program.graph) if base.name in targets
    }
    return written | {str(spec.target) for spec in signature.output_specs if spec.kind in kinds}


def mutated_input(name: str, source: Source) -> Finding:
    """The finding for one input, by the user's name for it."""
    return Finding(
        "mutated-input",
        f"the model writes its input {name!r}, and a program does not change its caller's tensors",
        f"Work on a copy, {name} = {name}.clone(), or use the operator without the underscore, "
        f"and return the new value",
        source,
    )


def _written(node: Node) -> list[object]:
    """The values that a call of an operator writes."""
    if not isinstance(node.target, OpOverload):
        return []
    arguments = node.target._schema.arguments
    values = {a.name: v for a, v in zip(arguments, node.args, strict=False)} | node.kwargs
    written = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    return [value for name in written for value in pytree.tree_leaves(values.get(name))]


def base_of(value: object) -> object:
    """The value that a chain of views begins at; the value itself if it is no view."""
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
