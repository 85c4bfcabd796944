"""Finds the calls that backends take whole, not decomposed, and those that none took in the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from torch.export import ExportedProgram

from rushlight.edge.config import EdgeCompileConfig
from rushlight.edge.decompositions import decomposition_table
from rushlight.ir.branches import branches
from rushlight.ir.source import debug_handles
from rushlight.partition.partitioner import TAG, Partitioner


def wanted_whole(
    program: ExportedProgram, partitioners: Iterable[Partitioner], config: EdgeCompileConfig
) -> set[str]:
    """The names of the calls in a captured program that would be decomposed although a partitioner
    takes them whole."""
    asked = [partitioner.ops_to_not_decompose(program) for partitioner in partitioners]
    if not any(operators for operators, _ in asked):
        return set()  # without building the table, which takes a while
    table = decomposition_table(config.preserve_ops, config.decompositions)
    names: set[str] = set()
    for operators, accepts in asked:
        wanted = {op for op in operators if op in table}
        names |= {
            node.name
            for node in program.graph.nodes
            if node.op == "call_function"
            and node.target in wanted
            and (accepts is None or accepts(node))
        }
    return names


def left_whole(
    captured: ExportedProgram, edge: ExportedProgram, names: Collection[str]
) -> set[str]:
    """The names of the calls that stayed whole and are in no delegate and no partition.

    Args:
        captured: the program before it was lowered.
        edge: the program with its delegates, and the tags of the last partitioner.
        names: the names of the calls in `captured` that were to stay whole.
    """
    targets = {node.name: node.target for node in captured.graph.nodes if node.name in names}
    handles = {h: n for n, h in debug_handles(captured.graph).items() if n in targets}
    return {
        handles[handle]
        for module in (edge.graph_module, *branches(edge.graph_module))
        for node in module.graph.nodes
        if (handle := node.meta.get("debug_handle")) in handles
        and node.target is targets[handles[handle]]
        and TAG not in node.meta
    }
