"""A concatenation whose pieces are computed where they belong."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.build.loads import order_of_loads
from rushlight.backends.cpu.graph.sizes import Sizes, shape_of
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.tiles.clusters import Cluster
from rushlight.backends.cpu.tiles.terms import Term


def join(b: Builder, cluster: Cluster) -> View:
    """The value of a concatenation; chains of elementwise calls before it store to its memory."""
    [cat] = cluster.nodes
    nodes: list[Node] = list(cat.args[0])  # type: ignore[arg-type]
    dim: int = cat.args[1] if len(cat.args) > 1 else 0  # type: ignore[assignment]
    sizes, dtype = shape_of(cat), cat.meta["val"].dtype
    views: dict[Any, View] = {}  # that pieces share
    terms: dict[Node, Term] = {}
    for node, chain in cluster.pieces.items():
        b.made_of(chain)
        terms[node] = b.terms(chain, views)
        b.origins.note(terms[node], _views(node, chain[-1]))
    b.made_of(cluster.nodes)
    orders = [order_of_loads(term) for term in terms.values()]
    is_same = all(order == orders[0] for order in orders) and len(orders[0]) == len(sizes)
    out = b.new(sizes, orders[0] if is_same else None, dtype)
    # One without elements may have any rank.
    nodes = [node for node in nodes if len(shape_of(node)) == len(sizes)]
    pieces = out.meta.split([shape_of(node)[dim] for node in nodes], dim)
    parts: list[tuple[Term, View]] = []
    copies: list[tuple[View, View]] = []
    for node, piece in zip(nodes, pieces, strict=True):
        target = out.moved(piece)
        if node in terms:
            last = cluster.pieces[node][-1]
            parts.append((terms[node], target.moved(piece.view(shape_of(last)))))
        else:
            copies.append((b.value(node), target))
    _store(b, parts)
    for source, target in copies:
        b.copy(source, target)
    return out


def _views(node: Node, last: Node) -> list[Node]:
    """The views between the end of a chain and what a concatenation takes of it."""
    found: list[Node] = []
    while node is not last:
        found.append(node)
        node = node.all_input_nodes[0]
    return found


def _store(b: Builder, parts: list[tuple[Term, View]]) -> None:
    """Pieces that are equally large in one pass, as far as a program holds them."""
    groups: dict[Sizes, list[tuple[Term, View]]] = {}
    for part in parts:
        groups.setdefault(part[1].shape, []).append(part)
    for group in groups.values():
        terms, views = zip(*group, strict=True)
        b.store(terms, views)
