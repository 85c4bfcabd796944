"""Rewrites branches of control flow so that torch's decomposition accepts them.

torch.export captures two things in a branch that its own decomposition then refuses: a tensor made
from numbers, such as `torch.tensor([1.0, 2.0])`; and a result that is an input of the branch (as in
`lambda x: x`), a view, or in another layout than the same result of another branch. Here the tensor
becomes an operand of the operator that calls the branch, like a weight, and the result is copied.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.capture.mutations import base_of
from rushlight.edge.constants import Constants, names_tensor
from rushlight.ir.branches import branch, branches, results_of
from rushlight.ir.programs import copy_program
from rushlight.ir.rewrite import insert

aten = torch.ops.aten
# The index of the argument with the operands that are passed to a branch last.
_OPERANDS = {"cond": 3, "while_loop": 3, "map_impl": 2, "scan": 3}


def prepare_branches(program: ExportedProgram) -> ExportedProgram:
    """`program` if it has no branches, else a changed copy; tensors are shared."""
    if not branches(program.graph_module):
        return program
    own = copy_program(program)
    _prepare(own.graph_module)
    constants = Constants(own)
    for node in list(own.graph.nodes):
        if names_tensor(node):
            tensor = own.graph_module.get_buffer(str(node.target))
            node.replace_all_uses_with(constants.add(tensor, like=node))
            _erase(node)
    own.graph_module.recompile()
    return own


def _prepare(module: GraphModule) -> None:
    """Prepare all branches of `module`; the tensors that they held are then its own."""
    for node in list(module.graph.nodes):
        if not isinstance(node.target, HigherOrderOperator):
            continue
        called = [a for a in node.args if isinstance(a, Node) and a.op == "get_attr"]
        graphs = list(dict.fromkeys(inner for a in called if (inner := branch(a)) is not None))
        for graph in graphs:
            _prepare(graph)
        if str(node.target) in _OPERANDS:
            for graph in graphs:
                _lift_tensors(module, node, graphs, graph)
            _copy_results(graphs if str(node.target) == "cond" else graphs[-1:])
        for graph in graphs:
            graph.recompile()
    module.recompile()


def _lift_tensors(
    module: GraphModule, call: Node, graphs: list[GraphModule], graph: GraphModule
) -> None:
    """Make the tensors that `graph` holds operands of `call`, which all its graphs take."""
    at = _OPERANDS[str(call.target)]
    for held in [n for n in graph.graph.nodes if names_tensor(n)]:
        name = f"_lifted_{len(module.graph.nodes)}"  # unique: each lifted tensor adds a node
        module.register_buffer(name, graph.get_buffer(str(held.target)))
        with module.graph.inserting_before(call):
            operand = module.graph.get_attr(name)
        operand.meta.update(held.meta)
        operands: Any = call.args[at] if at < len(call.args) else ()
        call.args = (*call.args[:at], (*operands, operand), *call.args[at + 1 :])
        for one in graphs:
            body = next(n for n in one.graph.nodes if n.op != "placeholder")
            with one.graph.inserting_before(body):
                taken = one.graph.placeholder(f"{name}_operand")
            taken.meta.update(held.meta)
            if one is graph:
                held.replace_all_uses_with(taken)
        _erase(held)


def _copy_results(graphs: list[GraphModule]) -> None:
    """Copy a result in all graphs if in one of them it is an input, a view or returned twice, or if
    its layouts differ."""
    returned = [results_of(graph.graph) for graph in graphs]
    for i, values in enumerate(zip(*returned, strict=True)):
        if not all(isinstance(_example(value), torch.Tensor) for value in values):
            continue
        layouts = {tuple(map(str, _example(value).stride())) for value in values}
        twice = any(own.index(own[i]) < i for own in returned)
        if len(layouts) > 1 or twice or any(_is_given(value) for value in values):
            for graph, value in zip(graphs, values, strict=True):
                _copy_result(graph, i, value)


def _is_given(value: Node) -> bool:
    """Whether a value is an input of its graph, or a view of anything."""
    return value.op == "placeholder" or base_of(value) is not value


def _example(value: Any) -> Any:
    return value.meta.get("val") if isinstance(value, Node) else None


def _copy_result(graph: GraphModule, i: int, value: Node) -> None:
    output = graph.graph.output_node()
    layout = {"memory_format": torch.contiguous_format}
    new = insert(graph.graph, aten.clone.default, (value,), layout, like=output)
    new.meta.update({k: v for k, v in value.meta.items() if k != "val"})
    results = results_of(graph.graph)
    results[i] = new
    output.args = (tuple(results) if isinstance(output.args[0], list | tuple) else new,)


def _erase(held: Node) -> None:
    """Remove a node that names a tensor, and the tensor if no other node names it."""
    module: Any = held.graph.owning_module
    held.graph.erase_node(held)
    if all(n.target != held.target for n in module.graph.nodes if n.op == "get_attr"):
        delattr(module, str(held.target))
