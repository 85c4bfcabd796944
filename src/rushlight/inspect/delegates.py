"""Reads the delegates of a method for a report: payloads, and the operators inside of them."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.inspect.filebytes import same_place
from rushlight.inspect.kernel_work import actual_of, cost_of
from rushlight.inspect.model import Actual, Delegate, DelegateNode, Instruction, Value
from rushlight.inspect.payloads import nodes_of, scratch_of
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.debug import Places
from rushlight.serialize.file import PTEFile
from rushlight.serialize.segments import as_bytes


def delegates_of(
    pte: PTEFile,
    plan: fb.ExecutionPlan,
    instructions: Sequence[Instruction],
    values: Sequence[Value],
    places: Sequence[Places],
) -> list[Delegate]:
    """The delegates of a method.

    Args:
        pte: the method's program.
        plan: the method.
        instructions, values: the report's view of them.
        places: for each delegate, where its operators come from; may be shorter.
    """
    calls: dict[int, list[int]] = {}
    for i, instruction in enumerate(instructions):
        calls.setdefault(instruction.delegate, []).append(i)
    users: dict[int, int] = {}
    for other in pte.program.execution_plan:
        for delegate in other.delegates:
            users[delegate.processed.index] = users.get(delegate.processed.index, 0) + 1
    same = same_place(pte.delegate_blobs)
    delegates = []
    for i, delegate in enumerate(plan.delegates):
        payload = delegate.processed.index
        data = as_bytes(pte.delegate_blobs[payload])
        args = instructions[calls[i][0]].args if i in calls else []
        delegates.append(
            Delegate(
                backend=delegate.id,
                bytes=len(data),
                scratch=scratch_of(delegate.id, data),
                shared=users[payload] > 1 or same[payload],
                calls=calls.get(i, []),
                specs=[(spec.key, len(as_bytes(spec.value))) for spec in delegate.compile_specs],
                nodes=_nodes(
                    *(delegate.id, data, [actual_of(values[arg]) for arg in args]),
                    places[i] if i < len(places) else {},
                ),
            )
        )
    return delegates


def _nodes(
    backend: str, payload: Buffer, args: Sequence[Actual | None], places: Places
) -> list[DelegateNode]:
    """The operators of a delegate: those of its payload, then others that the debug map lists."""
    nodes = {}
    for i, one in enumerate(nodes_of(backend, payload, args)):
        node = DelegateNode(str(i), one.work.name, one.inputs, one.results, one.outputs)
        node.flops, node.bytes, node.cost = one.work.flops, one.work.bytes, cost_of(one.work)
        nodes[node.place] = node
    for place, origins in places.items():
        node = nodes.setdefault(place, DelegateNode(place, place))
        node.nodes = [origin.name for origin in origins]
        node.sources = [origin.source for origin in origins]
    return list(nodes.values())
