"""The maps of a finished program: from its instructions to the nodes that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypedDict

from rushlight.schema import program as schema
from rushlight.schema.debug import DebugMap, DebugMethod


class DelegateMetadata(TypedDict):
    """A delegate that an instruction calls: its backend, and the debug handles of the places in
    it, by the backend's ids."""

    name: str
    delegate_map: dict[Any, list[int]]


class Maps(NamedTuple):
    """By method and instruction.

    Attributes:
        handles: the debug handle, or those of the nodes of the delegate that it calls.
        delegates: the delegate that it calls.
        outputs: how many values its delegate gives.
    """

    handles: dict[str, dict[int, Any]]
    delegates: dict[str, dict[int, DelegateMetadata]]
    outputs: dict[str, dict[int, int]]


def maps_of(
    program: schema.Program,
    methods: Iterable[str],
    kernels: Mapping[str, Mapping[int, int]],
    nodes: Mapping[str, Mapping[int, tuple[str, list[int]]]],
    debug: DebugMap,
) -> Maps:
    """The maps of a program.

    Args:
        program: its tables.
        methods: the traced ones.
        kernels: {method: {instruction: debug handle}} of the calls of kernels.
        nodes: {method: {instruction: (node, the values that it writes)}}.
        debug: where the nodes inside delegates are.
    """
    maps = Maps({}, {}, {})
    for plan in program.execution_plan:
        name = plan.name
        if name not in methods or not plan.chains:
            continue
        maps.handles[name], maps.delegates[name] = _of_plan(
            plan, kernels.get(name, {}), debug.method(name)
        )
        written = nodes.get(name, {})
        maps.outputs[name] = {
            at: len(written[at][1]) for at in maps.delegates[name] if at in written
        }
    return maps


def _of_plan(
    plan: schema.ExecutionPlan, kernels: Mapping[int, int], debug: DebugMethod
) -> tuple[dict[int, Any], dict[int, DelegateMetadata]]:
    handles: dict[int, Any] = {}
    delegates: dict[int, DelegateMetadata] = {}
    for at, instruction in enumerate(plan.chains[0].instructions):
        call = instruction.instr_args
        if not isinstance(call, schema.DelegateCall):
            if at in kernels:
                handles[at] = kernels[at]
            continue
        index = call.delegate_index
        places = debug.delegates[index] if index < len(debug.delegates) else {}
        inside = {
            place: sorted({node.handle for node in nodes if node.handle})
            for place, nodes in places.items()
        }
        handles[at] = sorted({handle for some in inside.values() for handle in some})
        delegates[at] = {"name": plan.delegates[index].id, "delegate_map": dict(inside)}
    return handles, delegates
