"""Nodes of a graph as a graph of their own, which the first one calls."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from torch.fx import Graph, GraphModule, Node

from rushlight.errors import Code, ExportError
from rushlight.ir.branches import attribute


def create_submodule_from_nodes(
    gm: GraphModule, node_list: Sequence[Node], tag: str, skip_legalize_graph: bool = False
) -> tuple[GraphModule, Node]:
    """Move nodes into a graph of their own.

    Args:
        gm: has the nodes; it is changed, and calls the new graph instead.
        node_list: the nodes; no path between two of them may lead outside.
        tag: part of the new module's name, `fused_TAG`.
        skip_legalize_graph: leave the order of nodes as it is, where the caller sorts them.

    Returns:
        The new graph, which returns a list, and the node that calls it.

    Raises:
        ExportError: there are no nodes, or some are not of this graph, or a path between two of
            them leads outside.
    """
    wanted = set(node_list)
    nodes = [node for node in gm.graph.nodes if node in wanted]
    if not nodes or len(nodes) != len(wanted):
        raise ExportError(
            f"create_submodule_from_nodes needs calls of one graph, and got {len(wanted)} nodes, "
            f"of which {len(nodes)} are of the given graph",
            code=Code.INVALID_ARGUMENT,
        )
    # Single results of several are taken inside, so that the new graph returns tensors.
    results = {u for n in nodes for u in n.users if _is_several(n) and u.target is operator.getitem}
    nodes = [node for node in gm.graph.nodes if node in wanted | results]
    inner, inputs, returned = _inner_graph(nodes)
    name = f"fused_{tag}"
    gm.add_submodule(name, inner)
    with gm.graph.inserting_after(nodes[-1]):
        call = gm.graph.call_module(name, tuple(inputs))
    outputs: Any = inner.graph.output_node().args[0]
    call.meta["val"] = [value.meta.get("val") for value in outputs]
    for i, outer in enumerate(returned):
        if outer is None:
            continue
        with gm.graph.inserting_after(call):
            result = gm.graph.call_function(operator.getitem, (call, i))
        result.meta = dict(outer.meta)
        outer.replace_all_uses_with(result, lambda user: user not in nodes)
    for node in reversed(nodes):
        gm.graph.erase_node(node)
    if not skip_legalize_graph:
        _sort_behind(call)
    gm.recompile()
    return inner, call


def _sort_behind(call: Node) -> None:
    """Move what needs a call's results behind it; the order is otherwise kept."""
    later: dict[Node, None] = {}
    todo = [call]
    while todo:
        new = [user for user in todo.pop().users if user not in later]
        later.update(dict.fromkeys(new))
        todo += new
    outside = [node.name for node in call.all_input_nodes if node in later]
    if outside:
        raise ExportError(
            f"{call.name} would need its own results, by {', '.join(outside)}: take all nodes of "
            f"the paths between its nodes",
            code=Code.INVALID_ARGUMENT,
        )
    place = max(call.users, default=call)  # the results are selected right behind the call
    for node in list(call.graph.nodes):
        if node in later and node < call:
            place.append(node)
            place = node


def _is_several(node: Node) -> bool:
    return isinstance(node.meta.get("val"), list | tuple)


def _inner_graph(nodes: list[Node]) -> tuple[GraphModule, list[Node], list[Node | None]]:
    """A graph of nodes; the nodes that it needs, and those whose values it returns, or None for a
    value that nothing outside uses."""
    inside = set(nodes)
    inputs = list(dict.fromkeys(u for n in nodes for u in n.all_input_nodes if u not in inside))
    graph, values, held = Graph(), {}, {}
    for node in inputs:
        values[node] = graph.placeholder(node.name)
        values[node].meta = dict(node.meta)
    outputs: list[Node] = []
    returned: list[Node | None] = []
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
        if node.op == "get_attr":
            held[str(node.target)] = attribute(node)
    for node in nodes:
        leaves = any(user not in inside for user in node.users)
        if _is_several(node):
            elements = {u.args[1]: u for u in node.users if u.target is operator.getitem}
            if not any(u not in inside for e in elements.values() for u in e.users):
                continue
            value: Any = node.meta["val"]
            for i, one in enumerate(value):
                element = values.get(elements.get(i))  # type: ignore[arg-type]
                if element is None:
                    element = graph.call_function(operator.getitem, (values[node], i))
                    element.meta["val"] = one
                outputs.append(element)
                returned.append(elements.get(i))
        elif leaves and not (node.target is operator.getitem and node.args[0] in inside):
            outputs.append(values[node])
            returned.append(node)
    graph.output(outputs)
    return GraphModule(held, graph), inputs, returned
