"""Partitions of all nodes that a backend supports: as few as a graph without cycles allows.

Every unit of the graph gets a level. A supported unit has the highest level of the supported units
that it needs, or one more than that of an unsupported unit that it needs; an unsupported unit has
the highest level of what it needs. The supported units of one level are one partition: what a level
needs from outside was computed from lower levels only, so there is no cycle; and since a path that
leaves the backend and comes back k times needs k + 1 partitions whoever cuts it, no cut has fewer.
(TensorFlow Lite's `PartitionGraphIntoIndependentNodeSubsets` alternates in the same way between
epochs of either kind.) It takes time linear in the graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import _get_qualified_name
from torch.fx.passes.infra.partitioner import Partition
from torch.fx.passes.operator_support import OperatorSupportBase

from rushlight.errors import Code, ExportError
from rushlight.partition.regions import has_effect
from rushlight.partition.units import units_of

CALLS = ("call_function", "call_module", "call_method")
_NOT_COMPUTING = ("torch.ops.aten.view", "_operator.getitem")
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


class CapabilityBasedPartitioner:
    """Proposes partitions of one graph; `GroupBasedPartitioner` is another name of it.

    Args:
        graph_module: the graph; not changed.
        operator_support: what the backend supports. It is asked for placeholders too: a supported
            one (a parameter, say) goes to the first partition that uses it.
        allows_single_node_partition: keep partitions that compute in a single node only; in none,
            too, unless `non_compute_ops` says which those are.
        non_compute_ops: qualified names of operators that do not count as computing, beside
            views and `getitem`.
        allowed_single_node_partition_ops: qualified names of operators for which a partition of
            their own is worth while.
        node_groups: nodes to keep together; a group that cannot be in one piece (a node that is
            not supported lies between two of its own) is taken apart.

    Attributes:
        declined: after `propose_partitions`: supported nodes that are in no partition, and why.

    Raises:
        ExportError: if a node is in two groups.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        node_groups: Sequence[Collection[Node]] | None = None,
    ) -> None:
        self._graph_module = graph_module
        self._support = operator_support
        self._idle = {*_NOT_COMPUTING, *(non_compute_ops or ())}
        self._worth = set(allowed_single_node_partition_ops or ())
        self._minimum = 2 if not allows_single_node_partition else 1 if non_compute_ops else 0
        self._groups = list(node_groups or ())
        self.declined: dict[Node, str] = {}
        members = [node for group in self._groups for node in set(group)]
        if len(members) > len(set(members)):
            twice = sorted({n.name for n in members if members.count(n) > 1})
            raise ExportError(
                f"nodes are in several groups: {twice}; merge groups that share nodes",
                code=Code.INVALID_ARGUMENT,
            )

    def propose_partitions(self) -> list[Partition]:
        """The partitions; the last one in the graph's order comes first, with the id 0."""
        modules = dict(self._graph_module.named_modules())
        supported = {
            node
            for node in self._graph_module.graph.nodes
            if node.op != "output" and self._support.is_node_supported(modules, node)
        }
        groups = [[node for node in group if node in supported] for group in self._groups]
        partitions, self.declined = propose(
            self._graph_module.graph, supported, groups, self._worth_while
        )
        return partitions

    def _worth_while(self, nodes: Iterable[Node]) -> bool:
        if self._minimum == 0:
            return True
        computing = 0
        for node in nodes:
            if node.op == "call_function":
                assert callable(node.target)
                name = _get_qualified_name(node.target)
                computing += (name not in self._idle) + (name in self._worth)
        return computing >= self._minimum


def propose(
    graph: Graph,
    supported: Collection[Node],
    groups: Sequence[Collection[Node]] = (),
    worth_while: Callable[[list[Node]], bool] = lambda nodes: True,
) -> tuple[list[Partition], dict[Node, str]]:
    """Partitions of the supported nodes and the groups, without cycles.

    A node that picks a result of another belongs to that one. Numbers, such as sizes, stay in a
    partition only if nothing outside uses them: a delegate hands out tensors.

    Args:
        graph: not changed.
        supported: nodes that may be in partitions.
        groups: nodes that may be in a partition together, whole or not at all; no node is in two.
        worth_while: whether the nodes of a partition are worth a call.

    Returns:
        The partitions, the last in the graph's order first, and the nodes that were supported but
        are in none, with the reason.
    """
    declined: dict[Node, str] = {}
    while True:
        taken = _with_results(graph, (set(supported).union(*groups)) - declined.keys())
        whole = [[n for n in group if n in taken] for group in groups]
        units, apart = units_of(graph, taken, whole)
        alone = {n for group in apart for n in group if n not in supported}
        if alone:
            reason = "the nodes of its pattern cannot be in one partition without a cycle"
            declined.update(dict.fromkeys(alone, reason))
            groups = [g for g in groups if not alone.intersection(g)]
            continue
        level = _levels(units, taken)
        _move_late(units, taken, level)
        levels = _collect(graph, taken, level)
        more = _too_small(levels, worth_while) or _numbers_that_leave(levels)
        if not more:
            order = sorted(levels, reverse=True)
            return [Partition(id=i, nodes=levels[k]) for i, k in enumerate(order)], declined
        declined.update(more)


def _with_results(graph: Graph, supported: set[Node]) -> set[Node]:
    """The supported nodes; what picks a result is supported exactly if its source is."""
    taken: set[Node] = set()
    for node in graph.nodes:
        source = node.args[0] if node.target is operator.getitem else None
        if isinstance(source, Node) and source.op in CALLS:
            if source in taken:
                taken.add(node)
        elif node in supported:
            taken.add(node)
    return taken


def _levels(units: list[list[Node]], taken: set[Node]) -> dict[Node, int]:
    """The level of every call; see the file's head.

    Args:
        units: nodes that go together, each after what it needs.
        taken: the supported nodes.
    """
    level: dict[Node, int] = {}
    effects: list[Node] = []  # they keep their order, wherever they run
    for unit in units:
        mine = unit[0] in taken
        before = [s for node in unit for s in node.all_input_nodes if s in level]
        mine_have = [node for node in unit if has_effect(node)]
        if mine_have:
            before += effects
            effects = mine_have[-1:]
        least = 0 if mine else -1
        highest = max((level[s] + (mine and s not in taken) for s in before), default=least)
        level.update(dict.fromkeys(unit, max(highest, least)))
    return level


def _move_late(units: list[list[Node]], taken: set[Node], level: dict[Node, int]) -> None:
    """Move units that only later partitions use into the first of these, if that passes no more
    values.

    A number moves in any case: it cannot be passed.
    """
    for unit in reversed(units):
        if unit[0] not in taken or any(has_effect(n) for n in unit):
            continue
        here, members = level[unit[0]], set(unit)
        users = {u for n in unit for u in n.users} - members
        if not users or not users <= taken:
            continue
        later = min(level[u] for u in users)
        if later == here:
            continue
        sources = {s for n in unit for s in n.all_input_nodes} - members
        near = [s for s in sources if level.get(s) == here and s in taken]
        if _is_number(unit[0]) or all(_is_passed(s, here, taken, level) for s in near):
            level.update(dict.fromkeys(unit, later))


def _is_passed(node: Node, here: int, taken: set[Node], level: dict[Node, int]) -> bool:
    """Whether the node is a result of its partition anyway."""
    if _is_number(node):
        return False
    return any(u not in taken or level[u] != here for u in node.users)


def _collect(graph: Graph, taken: set[Node], level: dict[Node, int]) -> dict[int, list[Node]]:
    """The nodes of every level in the graph's order, with placeholders where they are used."""
    levels: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node not in taken:
            continue
        at = level.get(node)
        if at is None:
            at = min((level[u] for u in node.users if u in taken), default=None)
        if at is not None:
            levels.setdefault(at, []).append(node)
    return levels


def _too_small(
    levels: dict[int, list[Node]], worth_while: Callable[[list[Node]], bool]
) -> dict[Node, str]:
    small = [n for nodes in levels.values() if not worth_while(nodes) for n in nodes]
    reason = "its partition would be too small to be worth a call"
    return {n: reason for n in small if n.op in CALLS}


def _numbers_that_leave(levels: dict[int, list[Node]]) -> dict[Node, str]:
    """Numbers that are used outside of their partition, and the numbers they are computed from."""
    leave: dict[Node, str] = {}
    for nodes in levels.values():
        members = set(nodes)
        for node in reversed(nodes):
            if node.op in CALLS and _is_number(node) and not members.issuperset(node.users):
                leave[node] = "it is a number that is used outside of the partition"
                members.discard(node)
    return leave


def _is_number(node: Node) -> bool:
    return isinstance(node.meta.get("val"), _NUMBERS)
