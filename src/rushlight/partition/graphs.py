"""Reads graphs with delegates, and compares graphs."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import has_free_symbols

from rushlight.ir.branches import attribute, branch
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.schema.program import CompileSpec


def get_delegates(graph: Graph) -> list[Node]:
    """The nodes that name lowered modules: `lowered_module_0` and so on."""
    return [
        node
        for node in graph.nodes
        if node.op == "get_attr"
        and any(u.target is executorch_call_delegate and u.args[0] is node for u in node.users)
    ]


def get_non_lowered_nodes(graph: Graph) -> list[Node]:
    """The calls that neither call a delegate nor select one of its results."""
    return [n for n in graph.nodes if n.op == "call_function" and not _of_delegate(n)]


def _of_delegate(node: Node) -> bool:
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        node = node.args[0]
    return node.target is executorch_call_delegate


def get_delegated_payload(
    graph_module: GraphModule,
) -> dict[str, tuple[str, list[CompileSpec], bytes]]:
    """The payloads of a graph, by lowered module: {name: (backend id, compile specs, payload)}."""
    payloads = {}
    for node in get_delegates(graph_module.graph):
        module = attribute(node)
        assert isinstance(module, LoweredBackendModule)
        payloads[node.name] = (module.backend_id, module.compile_specs, module.processed_bytes)
    return payloads


def get_lowered_submodules(
    graph_module: GraphModule,
) -> list[tuple[str, LoweredBackendModule, Node]]:
    """The lowered modules that one graph calls: (name, module, call)."""
    modules = []
    for node in graph_module.graph.find_nodes(op="call_function", target=executorch_call_delegate):
        module = attribute(node.args[0])
        assert isinstance(module, LoweredBackendModule)
        modules.append((str(node.args[0].target), module, node))
    return modules


def get_control_flow_submodules(graph_module: GraphModule) -> list[tuple[str, GraphModule, Node]]:
    """The branches and bodies that one graph's control flow runs: (name, graph, call)."""
    return [
        (str(source.target), inner, node)
        for node in graph_module.graph.nodes
        if node.op == "call_function"
        for source in node.all_input_nodes
        if source.op == "get_attr" and (inner := branch(source)) is not None
    ]


def is_shape_dynamic(node: Node) -> bool:
    """Whether a size of the node's tensor is known only at run time."""
    return bool(has_free_symbols(node.meta["val"].shape))


def is_identical_graph(graph_left: GraphModule, graph_right: GraphModule) -> bool:
    """Whether two graphs have the same nodes in the same order, called with the same arguments.

    Names of calls may differ; names of inputs and attributes may not. Branches of control flow are
    compared too.
    """
    left, right = list(graph_left.graph.nodes), list(graph_right.graph.nodes)
    if len(left) != len(right):
        return False
    place = {node: i for nodes in (left, right) for i, node in enumerate(nodes)}

    def described(arg: Any) -> Any:
        if isinstance(arg, Node):
            return "node", place[arg]
        if isinstance(arg, list | tuple):
            return [described(a) for a in arg]
        if isinstance(arg, dict):
            return {key: described(a) for key, a in arg.items()}
        # The type tells 1, 1.0 and True apart; repr makes NaN equal to itself.
        return type(arg), repr(arg) if isinstance(arg, float) else arg

    for mine, other in zip(left, right, strict=True):
        if (mine.op, mine.target) != (other.op, other.target):
            return False
        if described([mine.args, mine.kwargs]) != described([other.args, other.kwargs]):
            return False
        if mine.op == "get_attr" and not _same_attribute(attribute(mine), attribute(other)):
            return False
    return True


def _same_attribute(left: object, right: object) -> bool:
    if isinstance(left, GraphModule) and isinstance(right, GraphModule):
        return is_identical_graph(left, right)
    return type(left) is type(right)


def remove_first_quant_and_last_dequant(graph_module: GraphModule) -> None:
    """Let a quantised graph take and return quantised tensors; the graph is changed.

    An input whose only users quantise it, all in the same way, becomes a quantised input. An output
    that is dequantised last is returned quantised.
    """
    graph = graph_module.graph
    for node in graph.find_nodes(op="placeholder"):
        users = list(node.users)
        how = {(user.target, *map(str, user.args[1:]), str(user.kwargs)) for user in users}
        if len(how) == 1 and _is(users[0], "quantize_per_tensor"):
            node.meta["val"] = users[0].meta["val"]
            for user in users:
                user.replace_all_uses_with(node, propagate_meta=False)
                graph.erase_node(user)
    output = graph.output_node()
    last = [n for n in output.all_input_nodes if _is(n, "dequantize_per_tensor")]
    for node in last:
        output.replace_input_with(node, node.args[0])  # type: ignore[arg-type]
        if not node.users:
            graph.erase_node(node)
    graph_module.recompile()


def _is(node: Node, name: str) -> bool:
    target = node.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and target._schema.name == f"quantized_decomposed::{name}"
    )
