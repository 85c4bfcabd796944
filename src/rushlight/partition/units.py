"""Merges groups of nodes that must be in one partition into single units of an acyclic graph."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from torch.fx import Graph, Node

from rushlight.partition.regions import has_effect

Groups = list[list[Node]]


def units_of(
    graph: Graph, taken: Collection[Node], groups: Sequence[Collection[Node]]
) -> tuple[Groups, Groups]:
    """The calls of a graph as units, each after the units that it needs.

    A unit is a group, or a single call with the `getitem` nodes that select its results. If groups
    form a cycle in which all nodes are supported, the whole cycle becomes one unit. If groups form
    another cycle, half of them are split, those that span most of the graph first; this is repeated
    until there is no cycle.

    Args:
        graph: the graph; not changed.
        taken: the supported nodes.
        groups: groups of supported nodes; no node is in two.

    Returns:
        The units, and the groups that were split.
    """
    place = {node: i for i, node in enumerate(graph.nodes)}
    calls = [n for n in graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
    whole = [sorted((n for n in g if n in place), key=place.__getitem__) for g in groups]
    whole = [g for g in whole if len(g) > 1]
    apart: Groups = []
    while True:
        units = _units(calls, whole)
        if not whole:
            return units, apart
        unit_of = {node: i for i, unit in enumerate(units) for node in unit}
        needs = _needs(calls, unit_of)
        circles = [c for c in _components(len(units), needs) if len(c) > 1]
        if not circles:
            order = _order(units, needs, place)
            return [units[i] for i in order], apart
        for circle in circles:
            nodes = [n for i in circle for n in units[i]]
            inside = set(nodes)
            mine = [g for g in whole if g[0] in inside]
            whole = [g for g in whole if g[0] not in inside]
            if all(n in taken for n in nodes):
                whole.append(sorted(nodes, key=place.__getitem__))
                continue
            mine.sort(key=lambda g: place[g[-1]] - place[g[0]])
            whole += mine[: len(mine) // 2]
            apart += mine[len(mine) // 2 :]


def _units(calls: list[Node], groups: Groups) -> Groups:
    """The groups, and the calls that are in none; a `getitem` node is in the unit of its source.

    A unit's nodes are in the graph's order.
    """
    units: Groups = [[] for _ in groups]
    unit_of = {node: i for i, group in enumerate(groups) for node in group}
    for node in calls:
        source = node.args[0] if node.target is operator.getitem else None
        if isinstance(source, Node) and source in unit_of:
            unit_of[node] = unit_of[source]
        elif node not in unit_of:
            unit_of[node] = len(units)
            units.append([])
        units[unit_of[node]].append(node)
    return [unit for unit in units if unit]


def _needs(calls: list[Node], unit_of: Mapping[Node, int]) -> dict[int, dict[int, None]]:
    """The units that each unit needs; calls with effects keep their order."""
    needs: dict[int, dict[int, None]] = defaultdict(dict)
    last: int | None = None
    for node in calls:
        unit = unit_of[node]
        before = [unit_of[s] for s in node.all_input_nodes if s in unit_of]
        if has_effect(node):
            before += [] if last is None else [last]
            last = unit
        needs[unit].update((b, None) for b in before if b != unit)
    return needs


def _order(
    units: Groups, needs: Mapping[int, Iterable[int]], place: Mapping[Node, int]
) -> list[int]:
    """An order in which each unit comes after those that it needs, close to the graph's order."""
    order: list[int] = []
    done: set[int] = set()
    for start in sorted(range(len(units)), key=lambda i: place[units[i][-1]]):
        stack = [(start, iter(needs[start]))] if start not in done else []
        done.add(start)
        while stack:
            unit, left = stack[-1]
            needed = next((b for b in left if b not in done), None)
            if needed is None:
                order.append(unit)
                stack.pop()
            else:
                done.add(needed)
                stack.append((needed, iter(needs[needed])))
    return order


def _components(count: int, needs: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Strongly connected components: Tarjan's algorithm (1972), without recursion."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: list[int] = []
    is_open: set[int] = set()
    components: list[list[int]] = []
    for start in range(count):
        stack = [(start, iter(needs[start]))] if start not in number else []
        while stack:
            at, left = stack[-1]
            if at not in number:
                number[at] = low[at] = len(number)
                open_.append(at)
                is_open.add(at)
            for other in left:
                if other not in number:
                    stack.append((other, iter(needs[other])))
                    break
                if other in is_open:
                    low[at] = min(low[at], number[other])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[at])
                if low[at] == number[at]:
                    components.append([])
                    while at in is_open:
                        components[-1].append(open_.pop())
                        is_open.discard(components[-1][-1])
    return components
