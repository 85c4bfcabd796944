"""How the views that a term loads lie in memory."""

from __future__ import annotations

from rushlight.backends.cpu.graph.sizes import same
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.tiles.terms import Term
from rushlight.schema.cpu_engine import TileOp


def order_of_loads(term: Term) -> list[int]:
    """The order of dimensions in memory in which a term is best computed; [] if any is as good."""
    full = [v.meta for v in _loads_of(term) if not any(same(s, 0) for s in v.meta.steps)]
    return next((meta.order() for meta in full if not meta.is_contiguous()), [])


def _loads_of(term: Term) -> list[View]:
    """The views that a term loads."""
    found: dict[int, View] = {}
    seen: set[int] = set()
    stack = [term]
    while stack:
        one = stack.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.op is TileOp.LOAD:
            found[id(one.source)] = one.source
        stack += one.inputs
    return list(found.values())
