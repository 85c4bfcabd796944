"""Debug handles of a captured program, from those of the Edge program that was made of it."""

from __future__ import annotations

from collections.abc import Iterator

from torch.export import ExportedProgram
from torch.fx import Node

UNSET_DEBUG_HANDLE = 0
"""The handle of a call that nothing was made of."""

DEBUG_HANDLE_KEY = _KEY = "debug_handle"
FROM_NODE_KEY = "from_node"
"""The keys of nodes' `meta`."""


def propagate_back_debug_handle(
    exported_program: ExportedProgram,
    exported_program_graph_id: int,
    edge_dialect_program: ExportedProgram,
    disable_debug_handle_valdiation: bool = False,
) -> bool:
    """Give the calls of a captured program the handles of the Edge nodes that were made of them,
    and the others `UNSET_DEBUG_HANDLE`.

    Args:
        exported_program: what was captured; its nodes are changed.
        exported_program_graph_id: the number of its graph when it was captured.
        edge_dialect_program: what was made of it.
        disable_debug_handle_valdiation: also if some Edge nodes were made of none of its calls.

    Returns:
        Whether the handles were given: not if some Edge nodes were made of another program.
    """
    wanted = {
        origin: node.meta[_KEY]
        for node in _calls(edge_dialect_program)
        if _KEY in node.meta
        for origin in origins_of(node)
    }
    graph = exported_program_graph_id
    given = {
        node: next(
            (wanted[o] for o in ((node.name, graph), *origins_of(node)) if o in wanted), None
        )
        for node in _calls(exported_program)
    }
    if not disable_debug_handle_valdiation and not set(wanted.values()) <= set(given.values()):
        return False
    for node, handle in given.items():
        node.meta[_KEY] = UNSET_DEBUG_HANDLE if handle is None else handle
    return True


def origins_of(node: Node) -> list[tuple[str, int]]:
    """The names and the graphs' numbers of the nodes that a node was made of, the last one first;
    none if it does not tell."""
    found = []
    sources = node.meta.get(FROM_NODE_KEY)
    while sources:
        found.append((sources[-1].name, sources[-1].graph_id))
        sources = sources[-1].from_node
    return found


def get_greatest_ancestor_node_identifier(node: Node) -> str:
    """The first of the nodes that a node was made of, as "NAME.GRAPH".

    Raises:
        KeyError: the node does not tell.
    """
    origins = origins_of(node)
    if not origins:
        raise KeyError(f"node {node.name} has no meta['from_node']: torch.export writes it")
    name, graph = origins[-1]
    return f"{name}.{graph}"


def _calls(program: ExportedProgram) -> Iterator[Node]:
    return (node for node in program.graph.nodes if node.op not in ("placeholder", "output"))
