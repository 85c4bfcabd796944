"""Sums that take the place of what was added, so that one memory is enough for both."""

from __future__ import annotations

from rushlight.backends.cpu.graph.operations import residual_of
from rushlight.backends.cpu.graph.sizes import same
from rushlight.backends.cpu.graph.values import Graph, Step, View, bytes_of, lives_of
from rushlight.schema.cpu_engine import Place


def add_in_place(graph: Graph) -> None:
    """Let products of bytes store their sums where the residual lies, if nothing reads that later.

    Element by element the residual is read before the sum is stored; it must lie just as that does,
    and the product must read nothing else there.
    """
    lives = {id(memory): (first, last) for memory, first, last in lives_of(graph.steps)}
    for at, step in enumerate(graph.steps):
        if residual_of(step.operation) is None:
            continue
        [residual], [out] = step.operands, step.outputs
        old, new = out.memory, residual.memory
        if not (_is_whole(residual) and _is_whole(out) and same(old.size, new.size)):
            continue
        if _reads(step, residual) or lives[id(old)][0] != at or lives[id(new)][1] != at:
            continue
        for view in (view for one in graph.steps for view in one.views()):
            if view.memory is old:
                view.memory = new
        lives[id(new)] = lives[id(new)][0], lives[id(old)][1]


def _is_whole(view: View) -> bool:
    """Whether a view is of all of its memory, rows of columns without gaps."""
    meta = view.meta
    is_dense = meta.dim() != 2 or same(meta.steps[0], meta.shape[1])
    is_all = same(bytes_of(meta), view.memory.size) and same(meta.offset, 0)
    return view.memory.place is Place.SCRATCH and is_dense and is_all


def _reads(step: Step, residual: View) -> bool:
    """Whether a step reads the memory of its residual otherwise."""
    return any(v is not None and v.memory is residual.memory for v in step.inputs)
