"""The values of a traced run, by the places that computed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rushlight.errors import Code, RunError
from rushlight.inspect.effects import operator_name
from rushlight.inspect.trace.events import EventBlock
from rushlight.schema import program as schema
from rushlight.schema.debug import DebugMap, DebugMethod, DebugNode, Places

Array = np.ndarray[Any, np.dtype[Any]]
_KERNEL = "native_call_"
_DELEGATE = "DELEGATE_CALL"


@dataclass(frozen=True)
class Place:
    """A kernel's call, or a place inside a delegate, and what it computed.

    Attributes:
        instruction: the index of the instruction.
        inside: the delegate's id of the place; "" outside of delegates.
        backend: the backend's name; "" outside of delegates.
        nodes: the nodes of the Edge graph that it was made from.
        values: what it wrote.
    """

    instruction: int
    inside: str = ""
    backend: str = ""
    nodes: tuple[DebugNode, ...] = ()
    values: list[Array] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its nodes."""
        return tuple(node.name for node in self.nodes)


def places_of(
    block: EventBlock,
    plan: schema.ExecutionPlan,
    debug: DebugMap,
    outputs: Mapping[int, int],
) -> Iterator[Place]:
    """The places of a run in its order, with their values.

    A delegate that tells of no values between its operators is one place, with its results.

    Args:
        block: the run, recorded with all its values.
        plan: the method that ran.
        debug: where its instructions come from.
        outputs: by instruction, how many values it writes.

    Raises:
        RunError: another program ran.
    """
    method = debug.method(plan.name)
    instructions = plan.chains[0].instructions
    tells = {e.instruction for e in block.events if e.is_delegated_op and e.debug_data}
    for event in block.events:
        at = event.instruction
        if at is None:
            continue
        values = [np.asarray(value) for value in event.debug_data if value is not None]
        call = instructions[at].instr_args if at < len(instructions) else None
        if event.is_delegated_op:
            inside = _inside(method, call, at)
            place = str(event.delegate_debug_identifier)
            if not isinstance(call, schema.DelegateCall) or (inside and place not in inside):
                raise _other(plan.name, at, f"a place {place} of a delegate")
            yield Place(at, place, _backend(plan, call), inside.get(place, ()), values)
        elif event.name == _DELEGATE and at not in tells:
            inside = _inside(method, call, at)
            nodes = dict.fromkeys(node for some in inside.values() for node in some)
            results = values[len(values) - outputs.get(at, 0) :]
            backend = _backend(plan, call)
            yield Place(at, backend=backend, nodes=tuple(nodes), values=results)
        elif event.name.startswith(_KERNEL):
            kernel = event.name.removeprefix(_KERNEL)
            if _kernel(plan, call).rpartition("::")[2] != kernel:
                raise _other(plan.name, at, f"a call of {kernel}")
            node = method.instructions[at] if at < len(method.instructions) else DebugNode()
            yield Place(at, nodes=(node,), values=values)


def _inside(method: DebugMethod, call: object, at: int) -> Places:
    """The nodes of a delegate's places. Those of one in a branch or a loop are named as the nodes
    there are, "cond.sin": another graph may have the same names."""
    index = call.delegate_index if isinstance(call, schema.DelegateCall) else len(method.delegates)
    if index >= len(method.delegates):
        return {}
    places = method.delegates[index]
    caller = method.instructions[at].name if at < len(method.instructions) else ""
    flow = caller.rpartition(".")[0]
    if not flow:
        return places
    return {
        place: tuple(node._replace(name=f"{flow}.{node.name}") for node in nodes)
        for place, nodes in places.items()
    }


def _backend(plan: schema.ExecutionPlan, call: object) -> str:
    return plan.delegates[call.delegate_index].id if isinstance(call, schema.DelegateCall) else ""


def _kernel(plan: schema.ExecutionPlan, call: object) -> str:
    if not isinstance(call, schema.KernelCall):
        return ""
    return operator_name(plan.operators[call.op_index])


def _other(method: str, instruction: int, what: str) -> RunError:
    return RunError(
        f"the trace is of another program: instruction {instruction} of {method!r} is {what} "
        "there, and not in this one; export both from the same model with the same options",
        code=Code.INVALID_EXTERNAL_DATA,
    )
