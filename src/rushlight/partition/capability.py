"""Partitions all nodes that a backend supports, into as few partitions as possible without cycles.

Every unit of the graph gets a level. The level of a supported unit is the greatest of the levels of
the supported units that it needs, and of the levels plus one of the unsupported units that it
needs. The level of an unsupported unit is the greatest level of the units that it needs. The
supported units of one level are one partition. The inputs of a level were computed from lower
levels only, so there is no cycle. A path that leaves the backend and comes back k times needs k + 1
partitions however the graph is cut, so no cut has fewer. (TensorFlow Lite's
`PartitionGraphIntoIndependentNodeSubsets` alternates in the same way between epochs of either
kind.) The time is linear in the size of the graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import _get_qualified_name
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner as TorchPartitioner
from torch.fx.passes.infra.partitioner import Partition
from torch.fx.passes.operator_support import OperatorSupportBase

from rushlight.errors import Code, ExportError
from rushlight.partition.regions import has_effect
from rushlight.partition.units import units_of

CALLS = ("call_function", "call_module", "call_method")
_NOT_COMPUTING = ("torch.ops.aten.view", "_operator.getitem")
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


class CapabilityBasedPartitioner:
    """Proposes partitions of one graph.

    Args:
        graph_module: the graph; not changed.
        operator_support: says which nodes the backend supports. It is asked about placeholders
            too: a supported one (such as a parameter) goes to the first partition that uses it.
        allows_single_node_partition: keep partitions with a single computing node. Partitions
            without computing nodes are kept too, unless `non_compute_ops` is given.
        non_compute_ops: qualified names of operators that do not count as computing, in addition
            to views and `getitem`.
        allowed_single_node_partition_ops: qualified names of operators that are worth a partition
            of their own.
        node_groups: nodes to keep together; a group that cannot be in one partition (because an
            unsupported node is between two of its nodes) is split.

    Attributes:
        declined: after `propose_partitions`: the supported nodes that are in no partition, with the
            reasons.

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
        """The partitions, the last in the graph's order first; that one has the id 0."""
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


class GroupBasedPartitioner(CapabilityBasedPartitioner):
    """Proposes partitions that keep groups of nodes together; without groups those of torch's
    `CapabilityBasedPartitioner`, which may be more. It is ExecuTorch's name."""

    def propose_partitions(self) -> list[Partition]:
        """The partitions, the last in the graph's order first; that one has the id 0."""
        if self._groups:
            return super().propose_partitions()
        partitioner = TorchPartitioner(
            self._graph_module,
            self._support,
            allows_single_node_partition=self._minimum < 2,
            non_compute_ops=sorted(self._idle - set(_NOT_COMPUTING)),
            allowed_single_node_partition_ops=sorted(self._worth),
        )
        return partitioner.propose_partitions()


def propose(
    graph: Graph,
    supported: Collection[Node],
    groups: Sequence[Collection[Node]] = (),
    worth_while: Callable[[list[Node]], bool] = lambda nodes: True,
) -> tuple[list[Partition], dict[Node, str]]:
    """Partitions of the supported nodes and the groups, without cycles.

    A `getitem` node belongs to the partition of the node whose result it selects. Numbers, such as
    sizes, stay in a partition only if nothing outside uses them, because a delegate returns only
    tensors.

    Args:
        graph: the graph; not changed.
        supported: nodes that may be in partitions.
        groups: nodes that may be in a partition only all together; no node is in two groups.
        worth_while: whether the nodes of a partition are worth a call.

    Returns:
        The partitions, the last in the graph's order first, and the supported nodes that are in no
        partition, with the reasons.
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
    """The supported nodes; a `getitem` node is supported exactly if its source is."""
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
    """The level of every call; the docstring of this file defines it.

    Args:
        units: groups of nodes that stay together, each unit after those that it needs.
        taken: the supported nodes.
    """
    level: dict[Node, int] = {}
    effects: list[Node] = []  # the last call with effects; all such calls keep their order
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
    """Move units that only later partitions use into the first of these, if that does not increase
    the number of values that are passed.

    A number always moves, because it cannot be passed.
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
    """Whether the node is already a result of its partition."""
    if _is_number(node):
        return False
    return any(u not in taken or level[u] != here for u in node.users)


def _collect(graph: Graph, taken: set[Node], level: dict[Node, int]) -> dict[int, list[Node]]:
    """The nodes of every level, in the graph's order; placeholders are at their first user's."""
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
    """Numbers that are used outside their partition, and the numbers they are computed from."""
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
