"""Lists which nodes of a method each backend took, and which none took, with costs and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.ir.branches import attribute, branch
from rushlight.ir.cost import cost_of
from rushlight.ir.source import source_of
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.partition.partitioner import DECLINED
from rushlight.schema.source import Source


@dataclass(frozen=True)
class Covered:
    """One operator call of a method, wherever it runs.

    Attributes:
        name, operator: of the node.
        backend: the backend that took it; "" if none did.
        part: the index of its delegate in the method; -1 if it is in none.
        cost: the estimated time in microseconds.
        reasons: for a node that no backend took, {backend: the reason}; for others, the notes of
            the backend that took them.
        source: its Python line.
    """

    name: str
    operator: str
    backend: str
    part: int
    cost: float
    source: Source
    reasons: Mapping[str, str] = field(default_factory=dict)


def coverage(program: ExportedProgram) -> list[Covered]:
    """Every operator call of an Edge program, those inside delegates and branches included."""
    parts: dict[LoweredBackendModule, int] = {}
    return list(_covered(program.graph_module, "", -1, parts, {}))


def _covered(
    module: GraphModule,
    backend: str,
    part: int,
    parts: dict[LoweredBackendModule, int],
    notes: Mapping[str, str],
) -> Iterator[Covered]:
    for node in module.graph.nodes:
        if node.op == "get_attr" and (inner := branch(node)) is not None:
            yield from _covered(inner, backend, part, parts, notes)
        elif node.target is executorch_call_delegate:
            yield from _inside(node, part, parts)
        elif node.op == "call_function" and isinstance(node.target, OpOverload):
            reasons = node.meta.get(DECLINED, {})
            if backend:
                reasons = {backend: notes[node.name]} if node.name in notes else {}
            yield Covered(
                node.name,
                str(node.target),
                backend,
                part,
                cost_of(node),
                source_of(node),
                reasons,
            )


def _inside(call: Node, part: int, parts: dict[LoweredBackendModule, int]) -> Iterator[Covered]:
    """The nodes of a delegate; those of a delegate inside it count as its own."""
    lowered = attribute(call.args[0])  # type: ignore[arg-type]
    assert isinstance(lowered, LoweredBackendModule)
    if part < 0:
        part = parts.setdefault(lowered, len(parts))
    graph = lowered.original_module.graph_module
    yield from _covered(graph, lowered.backend_id, part, parts, lowered.meta.get("notes", {}))
