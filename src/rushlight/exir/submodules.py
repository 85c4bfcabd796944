"""Submodules of graphs, as ExecuTorch's functions find and arrange them."""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch.export.graph_signature import OutputKind, OutputSpec
from torch.fx import GraphModule, Node

from rushlight.partition import get_control_flow_submodules

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


def get_cond_while_submodules(graph_module: GraphModule) -> list[tuple[str, GraphModule, Node]]:
    """The branches of `cond` and the parts of `while_loop` that one graph runs: (name, graph,
    call)."""
    return _of_calls(graph_module, torch.ops.higher_order.cond, torch.ops.higher_order.while_loop)


def get_scan_submodules(graph_module: GraphModule) -> list[tuple[str, GraphModule, Node]]:
    """The bodies of `scan` that one graph runs: (name, graph, call)."""
    return _of_calls(graph_module, torch.ops.higher_order.scan)


def _of_calls(graph_module: GraphModule, *targets: object) -> list[tuple[str, GraphModule, Node]]:
    return [one for one in get_control_flow_submodules(graph_module) if one[2].target in targets]


def bfs_trace_with_node_process(gm: GraphModule, node_op: Callable[[Node], None]) -> None:
    """Call a function with each node of a graph, then with those of its branches and bodies."""
    graphs = [gm]
    for module in graphs:
        for node in module.graph.nodes:
            node_op(node)
        graphs += [inner for _, inner, _ in get_control_flow_submodules(module)]


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
