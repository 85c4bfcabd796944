"""The partitions of one graph: their nodes, and an order in which they can run."""

from __future__ import annotations

import heapq
import operator
from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from torch.fx import Graph, Node

from rushlight.errors import Code, ExportError
from rushlight.ir.rewrite import is_pure
from rushlight.ir.source import source_of
from rushlight.partition.partitioner import TAG, DelegationSpec


@dataclass(eq=False)
class Region:
    """The nodes of one partition in one graph, in the graph's order.

    Attributes:
        tag: the partition's name.
        spec: the backend that takes it, and its options.
        nodes: its calls.
    """

    tag: str
    spec: DelegationSpec
    nodes: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        shown = ", ".join(f"{n.name} ({n.target})" for n in self.nodes[:4])
        more = f" and {len(self.nodes) - 4} more" if len(self.nodes) > 4 else ""
        return f"partition {self.tag!r} for {self.spec.backend_id} ({shown}{more})"


Unit = Node | Region
"""A node that is in no partition, or a whole partition."""


def find_regions(
    graph: Graph, data: Container[Node], tags: Mapping[str, DelegationSpec], method: str
) -> dict[Node, Region]:
    """The partition of every node that has one.

    A `getitem` node that selects a result of a partition's node belongs to the partition too.

    Args:
        graph: the graph with tags.
        data: the nodes of its parameters, buffers and constants.
        tags: the backend and its options for each tag.
        method: the method's name, for messages.

    Raises:
        ExportError: if a node's tag is not in `tags`, or a node cannot be in a partition.
    """
    regions: dict[str, Region] = {}
    region_of: dict[Node, Region] = {}
    for node in graph.nodes:
        tag = node.meta.get(TAG)
        if tag is not None and tag not in tags:
            raise ExportError(
                f"node {node.name} ({node.target}) has the tag {tag!r}, which partition_tags does "
                f"not name; it names {sorted(tags)}. Return a DelegationSpec for every tag",
                code=Code.INVALID_ARGUMENT,
                where=method,
                sources=[source_of(node)],
            )
        is_input = node.op == "placeholder" and node not in data
        if tag is not None and (is_input or node.op == "output"):
            what = "a user input" if is_input else "the output"
            raise ExportError(
                f"node {node.name}, {what}, has the tag {tag!r}, and should not be tagged: tag "
                f"calls, parameters, buffers and constants only",
                code=Code.INVALID_ARGUMENT,
                where=method,
            )
        if node.op != "call_function":
            continue
        if node.target is operator.getitem and node.args[0] in region_of:
            region = region_of[node.args[0]]
        elif tag is not None:
            region = regions.setdefault(tag, Region(tag, tags[tag]))
        else:
            continue
        region.nodes.append(node)
        region_of[node] = region
    return region_of


def run_order(graph: Graph, region_of: Mapping[Node, Region], method: str) -> list[Unit]:
    """The graph as units, each after the units that it needs and otherwise in the graph's order.

    Raises:
        ExportError: if partitions need each other's results; it names the nodes of the cycle.
    """
    units: dict[Unit, int] = {}
    for node in graph.nodes:
        units.setdefault(region_of.get(node, node), len(units))
    needs = _needs(graph, region_of)
    waiting = {unit: len(needs[unit]) for unit in units}
    users: dict[Unit, list[Unit]] = defaultdict(list)
    for unit, before in needs.items():
        for one in before:
            users[one].append(unit)
    ready = [(at, unit) for unit, at in units.items() if not waiting[unit]]
    heapq.heapify(ready)
    order: list[Unit] = []
    while ready:
        _, unit = heapq.heappop(ready)
        order.append(unit)
        for user in users[unit]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (units[user], user))
    if len(order) < len(units):
        done = set(order)
        raise _cycle({s: [n for n in needs[s] if n not in done] for s in units}, done, method)
    return order


def has_effect(node: Node) -> bool:
    """Whether the node is a call with effects, whose order among such calls must be kept."""
    return node.op == "call_function" and not is_pure(node)


def _needs(graph: Graph, region_of: Mapping[Node, Region]) -> dict[Unit, dict[Unit, None]]:
    """The units that each unit needs; calls with effects keep their order."""
    needs: dict[Unit, dict[Unit, None]] = defaultdict(dict)
    last: Node | None = None
    for node in graph.nodes:
        unit = region_of.get(node, node)
        for source in node.all_input_nodes:
            other = region_of.get(source, source)
            if other is not unit:
                needs[unit][other] = None
        if unit is node and has_effect(node):
            if last is not None:
                needs[node][last] = None
            last = node
    return needs


def _cycle(needs: Mapping[Unit, list[Unit]], done: set[Unit], method: str) -> ExportError:
    unit = next(s for s in needs if s not in done)
    seen: list[Unit] = []
    while unit not in seen:  # every unit that is left needs another one that is left
        seen.append(unit)
        unit = needs[unit][0]
    around = seen[seen.index(unit) :]
    around.reverse()
    first = next(i for i, s in enumerate(around) if isinstance(s, Region))
    around = around[first:] + around[:first]
    text = " → ".join(_describe(s) for s in [*around, around[0]])
    return ExportError(
        f"partitions form a cycle, and a delegate runs in one piece: {text}. Tag what lies between "
        f"as well, or give the parts before and after it tags of their own",
        code=Code.INVALID_ARGUMENT,
        where=method,
        sources=[source_of(unit) for unit in around if isinstance(unit, Node)],
    )


def _describe(unit: Unit) -> str:
    if isinstance(unit, Region):
        return str(unit)
    source = source_of(unit)
    return f"{unit.name} ({unit.target})" + (f", {source}" if source.file else "")
