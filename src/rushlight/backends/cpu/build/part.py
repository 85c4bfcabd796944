"""From a part of a graph to the engine's graph, cluster by cluster."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from rushlight.backends.cpu.build.builder import Builder, Translate
from rushlight.backends.cpu.build.join import join
from rushlight.backends.cpu.build.multiplied import Place
from rushlight.backends.cpu.graph.values import Graph
from rushlight.backends.cpu.tiles.assemble import TooLongError
from rushlight.backends.cpu.tiles.clusters import Cluster, clusters_of, is_elementwise


def build_graph(
    program: ExportedProgram,
    weights: torch.dtype,
    translate: dict[Any, Translate],
    multiplied: frozenset[Place],
) -> Graph:
    """The engine's graph of a part.

    Args:
        program: the part.
        weights: in which dtype weights of products are stored.
        translate: what makes the nodes of a call that is not elementwise, by its operator; it
            returns the call's value, a view or a list of them.
        multiplied: what `weights_of_linear` gives for all parts of the file.
    """
    builder = Builder(program, weights, translate, multiplied)
    for cluster in clusters_of(program.graph, lambda node: builder.data(node) is not None):
        _build(builder, cluster)
    returned: Any = program.graph.output_node().args[0]
    for i, node in enumerate(returned):
        builder.add_output(node, i)
    return builder.graph


def _build(b: Builder, cluster: Cluster) -> None:
    """Make the nodes of a cluster; one for each chain if one tile program cannot hold all."""
    b.begin(cluster)
    if not cluster.pieces and not is_elementwise(cluster.nodes[0]):
        [node] = cluster.nodes
        b.set_value(node, b.translated(node))
        return
    try:
        if cluster.pieces:
            value = join(b, cluster)
        elif cluster.anchor is not None:
            value = b.anchored(cluster)
        else:
            value = b.elementwise(cluster.nodes)
    except TooLongError:
        _build_apart(b, cluster)
    else:
        b.set_value(cluster.nodes[-1], value)


def _build_apart(b: Builder, cluster: Cluster) -> None:
    """Make nodes of their own for the chains of a cluster, for its anchor and its concatenation."""
    chains = [*cluster.pieces.values(), cluster.nodes]
    inside = {node for chain in chains if is_elementwise(chain[0]) for node in chain[:-1]}
    chain_of = {chain[-1]: chain for chain in chains}
    for node in cluster.all:
        if node in inside or b.has_value(node):
            continue
        chain = chain_of.get(node, [node])
        b.made_of(chain)
        b.set_value(node, b.elementwise(chain) if is_elementwise(node) else b.translated(node))
