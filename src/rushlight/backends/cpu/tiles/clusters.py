"""Which calls become one node: chains of elementwise calls, and the products before them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node

from rushlight.backends.cpu.graph.sizes import all_same, shape_of
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.tiles.terms import TERMS

aten = torch.ops.aten
_WEIGHTS = {
    aten.linear.default: 1,
    aten.addmm.default: 2,
    aten.mm.default: 1,
    aten.convolution.default: 1,
    calls.product: 1,
    calls.convolution: 1,
    calls.dynamic_product: 1,
    calls.weight_only_product: 1,
}
"""Calls that can have elementwise calls as their epilogue if their weights are constant: the index
of the argument that is the weights."""
IMAGES = (aten.convolution.default, calls.convolution)
"""The convolutions among them, whose results are images."""


@dataclass(eq=False)
class Cluster:
    """Calls that are computed by one node.

    Attributes:
        nodes: in the order of the graph; elementwise, or a single call.
        anchor: the product or convolution before them, if it is part of the node.
        reshapes: the views between the anchor and the elementwise calls.
        pieces: of a concatenation: {its operand: the chain that computes it}.
        views: the views between these chains and the concatenation.
    """

    nodes: list[Node] = field(default_factory=list)
    anchor: Node | None = None
    reshapes: list[Node] = field(default_factory=list)
    pieces: dict[Node, list[Node]] = field(default_factory=dict)
    views: list[Node] = field(default_factory=list)

    @property
    def all(self) -> list[Node]:
        """Every node of it, in order."""
        before = [self.anchor] if self.anchor is not None else []
        pieces = [node for piece in self.pieces.values() for node in piece]
        return [*before, *self.reshapes, *pieces, *self.views, *self.nodes]


def clusters_of(graph: Graph, is_constant: Callable[[Node], bool]) -> list[Cluster]:
    """The calls of a graph, fused and in an order in which they can run.

    A call joins the chain of its users if all of them are in the same chain: then nothing else
    needs its result, and no path leaves the chain and returns to it.
    """

    def is_anchor(node: Node) -> bool:
        weights = node.args[_WEIGHTS[node.target]] if node.target in _WEIGHTS else None
        return isinstance(weights, Node) and is_constant(weights)

    calls = [n for n in graph.nodes if n.op == "call_function" and not is_number(n)]
    cluster_of: dict[Node, Cluster] = {}
    for node in reversed(calls):
        users = {cluster_of.get(user) for user in node.users}
        chain = next(iter(users)) if len(users) == 1 else None
        fits = (
            chain is not None
            and is_elementwise(node)
            and is_elementwise(chain.nodes[-1])
            and all_same(shape_of(node), shape_of(chain.nodes[-1]))
        )
        cluster_of[node] = chain if fits and chain is not None else Cluster()
        cluster_of[node].nodes.append(node)
    for cluster in dict.fromkeys(cluster_of.values()):
        cluster.nodes.reverse()
    clusters = list({id(c): c for c in (cluster_of[n] for n in calls)}.values())
    for cluster in clusters:
        if is_elementwise(cluster.nodes[0]):
            _take_anchor(cluster, cluster_of, is_anchor)
    for cluster in clusters:
        if cluster.nodes[0].target is aten.cat.default:
            _take_pieces(cluster, cluster_of)
    return _in_order([c for c in clusters if cluster_of[c.nodes[0]] is c], cluster_of)


def is_anchor_target(target: Any) -> bool:
    """Whether calls of an operator can have elementwise calls as their epilogue."""
    return target in _WEIGHTS


def is_elementwise(node: Node) -> bool:
    """Whether a call is computed by tile programs."""
    return node.op == "call_function" and node.target in TERMS


def is_number(node: Node) -> bool:
    """Whether a call computes a size, which is no node of the engine."""
    return isinstance(node.meta.get("val"), int | torch.SymInt)


def _take_anchor(
    cluster: Cluster, cluster_of: dict[Node, Cluster], is_anchor: Callable[[Node], bool]
) -> None:
    """Make a chain the epilogue of a product whose result only the chain uses, if there is one."""
    inside = set(cluster.nodes)
    operands = {arg: None for n in cluster.nodes for arg in n.all_input_nodes if arg not in inside}
    for operand in operands:
        node = operand
        reshapes: list[Node] = []
        while node.target is aten.view_copy.default and _only(node, inside, reshapes):
            reshapes.append(node)
            node = node.all_input_nodes[0]
        reshapes.reverse()
        if not is_anchor(node) or not _only(node, inside, reshapes):
            continue
        if not all_same(shape_of(operand), shape_of(cluster.nodes[0])):
            continue
        if not _keeps_rows(node, operand):
            continue
        cluster.anchor, cluster.reshapes = node, reshapes
        for one in (node, *reshapes):
            cluster_of[one] = cluster
        return


def _take_pieces(cluster: Cluster, cluster_of: dict[Node, Cluster]) -> None:
    """Let a concatenation compute its elementwise operands that nothing else uses."""
    [cat] = cluster.nodes
    for operand in cat.all_input_nodes:
        node = operand
        views: list[Node] = []
        while _is_flat_view(node) and _only(node, {cat}, views):
            views.append(node)
            node = node.all_input_nodes[0]
        views.reverse()
        chain = cluster_of.get(node)
        if chain is None or not is_elementwise(node) or not _only(node, {cat}, views):
            continue
        if chain.anchor is not None or chain.nodes[-1] is not node:
            continue
        cluster.pieces[operand] = chain.nodes
        cluster.views += views
        for one in (*chain.nodes, *views):
            cluster_of[one] = cluster


def _is_flat_view(node: Node) -> bool:
    """Whether a call only adds or removes dimensions of one element."""
    if node.target is not aten.view_copy.default:
        return False
    before, after = (
        [size for size in shape_of(one) if size != 1] for one in (node.all_input_nodes[0], node)
    )
    return before == after


def _only(node: Node, users: set[Node], views: Sequence[Node]) -> bool:
    """Whether these users and views, and no other calls, use a node."""
    return bool(node.users) and all(user in users or user in views for user in node.users)


def _keeps_rows(anchor: Node, reshaped: Node) -> bool:
    """Whether a reshape of a product's result keeps its rows whole; images are not reshaped."""
    if anchor is reshaped:
        return True
    is_image = anchor.target in IMAGES
    return not is_image and all_same(shape_of(anchor)[-1:], shape_of(reshaped)[-1:])


def _in_order(clusters: Iterable[Cluster], cluster_of: dict[Node, Cluster]) -> list[Cluster]:
    """The clusters in an order in which each comes after those whose results it needs."""
    done: dict[int, Cluster] = {}
    ordered: list[Cluster] = []
    for cluster in clusters:
        stack = [cluster]
        while stack:
            top = stack[-1]
            if id(top) in done:
                stack.pop()
                continue
            needs = [cluster_of[a] for n in top.all for a in n.all_input_nodes if a in cluster_of]
            missing = [c for c in needs if c is not top and id(c) not in done]
            if missing:
                stack += missing
            else:
                done[id(top)] = top
                ordered.append(top)
                stack.pop()
    return ordered
