"""Sums that are stored over their residual, so that one memory is enough for both."""

from __future__ import annotations

from rushlight.backends.cpu.graph.operations import residual_of
from rushlight.backends.cpu.graph.sizes import same
from rushlight.backends.cpu.graph.values import EngineNode, Graph, View, bytes_of, lives_of
from rushlight.schema.cpu_engine import Place


def add_in_place(graph: Graph) -> None:
    """Let products of bytes store their sums over the residual, if nothing reads that later.

    Each element of the residual is read before its sum is stored. Both must have the same layout,
    and the product must read nothing else in that memory.
    """
    lives = {id(memory): (first, last) for memory, first, last in lives_of(graph.nodes)}
    for at, node in enumerate(graph.nodes):
        if residual_of(node.operation) is None:
            continue
        [residual], [out] = node.operands, node.outputs
        old, new = out.memory, residual.memory
        if not (_is_whole(residual) and _is_whole(out) and same(old.size, new.size)):
            continue
        if _reads(node, residual) or lives[id(old)][0] != at or lives[id(new)][1] != at:
            continue
        for view in (view for one in graph.nodes for view in one.views()):
            if view.memory is old:
                view.memory = new
        lives[id(new)] = lives[id(new)][0], lives[id(old)][1]


def _is_whole(view: View) -> bool:
    """Whether a view covers all of its memory, in rows without gaps."""
    meta = view.meta
    is_dense = meta.dim() != 2 or same(meta.strides[0], meta.shape[1])
    is_all = same(bytes_of(meta), view.memory.size) and same(meta.offset, 0)
    return view.memory.place is Place.SCRATCH and is_dense and is_all


def _reads(node: EngineNode, residual: View) -> bool:
    """Whether a node also reads the memory of its residual as an input."""
    return any(v is not None and v.memory is residual.memory for v in node.inputs)
