"""Submodules of graphs, as ExecuTorch's functions find and arrange them."""

from __future__ import annotations

import operator

import torch
from torch.export.graph_signature import OutputKind, OutputSpec
from torch.fx import GraphModule, Node

_WRITTEN = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def submodule_of(
    graph_module: GraphModule, node: Node, arg_index: int
) -> tuple[str, torch.nn.Module, Node]:
    """A submodule that a call takes as an argument.

    Args:
        graph_module: the graph that has the call.
        node: the call.
        arg_index: which of its arguments.

    Returns:
        the submodule's name, the submodule, and the call.

    Raises:
        ValueError: that argument is no submodule.
    """
    held = node.args[arg_index]
    if not isinstance(held, Node) or held.op != "get_attr":
        raise ValueError(f"argument {arg_index} of {node.name} is {held!r}, not a submodule")
    name = str(held.target)
    return name, graph_module.get_submodule(name), node


def arrange_graph_outputs(
    graph_module: GraphModule, output_specs: list[OutputSpec], call_module_node: Node
) -> GraphModule:
    """Put the new values of buffers and inputs before the other results of a submodule, as
    torch.export does.

    Args:
        graph_module: the submodule; its results are put in order, and it is returned.
        output_specs: what each result is; put in the same order.
        call_module_node: its call; what selects results from it is changed accordingly.
    """
    order = sorted(range(len(output_specs)), key=lambda i: output_specs[i].kind not in _WRITTEN)
    output = graph_module.graph.output_node()
    results = output.args[0]
    assert isinstance(results, tuple | list)
    output.args = (tuple(results[i] for i in order),)
    output_specs[:] = [output_specs[i] for i in order]
    for user in list(call_module_node.users):
        if user.target is operator.getitem:
            user.args = (call_module_node, order.index(user.args[1]))  # type: ignore[arg-type]
    graph_module.recompile()
    return graph_module
