"""Partitions from patterns: groups of nodes that a backend takes all together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.partitioner import Partition
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

from rushlight.errors import Code, ExportError
from rushlight.partition.capability import propose

Patterns = Iterable[Collection[Node]]


def generate_pattern_op_partitions(
    graph_module: GraphModule,
    patterns: Sequence[Graph] | None = None,
    partitions_list: Patterns | None = None,
    op_support: OperatorSupportBase | None = None,
    ignore_literals: bool = False,
) -> list[Partition]:
    """The largest partitions of the matches of patterns, of listed nodes and of supported nodes.

    Args:
        graph_module: the graph; not changed. The caller tags the partitions' nodes.
        patterns: graphs to look for, such as the `graph` of an Edge program. A match is taken
            whole, or left out if it would make a cycle.
        partitions_list: lists of further nodes.
        op_support: says which other nodes are supported.
        ignore_literals: let a number in a pattern match any number.

    Returns:
        The partitions, the last in the graph's order first.
    """
    groups: list[Collection[Node]] = []
    for pattern in patterns or ():
        for match in SubgraphMatcher(pattern, ignore_literals=ignore_literals).match(
            graph_module.graph
        ):
            pairs = match.nodes_map.items()
            groups.append([n for p, n in pairs if p.op != "placeholder" != n.op])
    listed = {node for nodes in partitions_list or () for node in nodes}
    supported = listed | _supported(graph_module, op_support)
    return propose(graph_module.graph, supported, merge_overlapping(groups))[0]


def generate_partitions_from_list_of_nodes(
    graph_module: GraphModule,
    pattern_list: Patterns | None = None,
    op_support: OperatorSupportBase | None = None,
) -> list[Partition]:
    """The largest partitions of the listed nodes and of supported ones.

    Args:
        graph_module: the graph; not changed.
        pattern_list: lists of nodes; with parameters, if partitions are to own them.
        op_support: says which other nodes are supported.

    Raises:
        ExportError: if neither is given.
    """
    supported = _listed_or_supported(graph_module, pattern_list, op_support)
    return propose(graph_module.graph, supported)[0]


def generate_grouped_partitions_from_list_of_nodes(
    graph_module: GraphModule,
    pattern_list: Patterns | None = None,
    op_support: OperatorSupportBase | None = None,
) -> list[Partition]:
    """Partitions in which each list of nodes stays together, or is left out if it makes a cycle.

    Args:
        graph_module: the graph; not changed.
        pattern_list: lists of nodes; lists that share a call are merged.
        op_support: says which other nodes are supported, each by itself.
    """
    listed = [list(nodes) for nodes in pattern_list] if pattern_list is not None else None
    data = {n for nodes in listed or () for n in nodes if n.op in ("placeholder", "get_attr")}
    supported = _listed_or_supported(graph_module, None if listed is None else [data], op_support)
    calls = [[n for n in nodes if n not in data] for nodes in listed or ()]
    return propose(graph_module.graph, supported, merge_overlapping(calls))[0]


def merge_overlapping(groups: Patterns) -> list[list[Node]]:
    """The groups, with those that share a node merged."""
    merged: list[list[Node]] = []
    group_of: dict[Node, int] = {}
    for group in groups:
        others = {group_of[n] for n in group if n in group_of}
        into = max(others, key=lambda i: len(merged[i]), default=len(merged))
        if into == len(merged):
            merged.append([])
        moved = [n for i in others - {into} for n in merged[i]]
        for i in others - {into}:
            merged[i] = []
        new = [n for n in dict.fromkeys(group) if group_of.get(n) != into and n not in moved]
        merged[into] += [*moved, *new]
        group_of.update(dict.fromkeys([*moved, *new], into))
    return [group for group in merged if group]


def _listed_or_supported(
    graph_module: GraphModule, listed: Patterns | None, op_support: OperatorSupportBase | None
) -> set[Node]:
    if listed is None and op_support is None:
        raise ExportError(
            "there is nothing to make partitions of: pass lists of nodes or an operator support",
            code=Code.INVALID_ARGUMENT,
        )
    nodes = {node for nodes in listed or () for node in nodes}
    return nodes | _supported(graph_module, op_support)


def _supported(graph_module: GraphModule, op_support: OperatorSupportBase | None) -> set[Node]:
    if op_support is None:
        return set()
    modules = dict(graph_module.named_modules())
    return {
        node
        for node in graph_module.graph.nodes
        if node.op != "output" and op_support.is_node_supported(modules, node)
    }
