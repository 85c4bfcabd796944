"""The times of a trace by method and operator of the program that ran, for a report."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.inspect.model import Method, MethodTimes, Timing
from rushlight.inspect.trace.events import Event, EventBlock
from rushlight.inspect.trace.inspector import Inspector
from rushlight.inspect.trace.statistics import operators_of

_KERNEL, _DELEGATE, _RUN = "native_call_", "DELEGATE_CALL", "Method::execute"


def times_of(trace: Inspector, methods: Sequence[Method]) -> list[MethodTimes]:
    """The times of the methods that a trace has runs of.

    Args:
        trace: its times must be in milliseconds.
        methods: those of the program.
    """
    blocks: dict[str, list[EventBlock]] = {}
    for block in trace.event_blocks:
        if block.name == "Execute":
            name = block.method or (methods[0].name if len(methods) == 1 else "forward")
            blocks.setdefault(name, []).append(block)
    known = {method.name: method for method in methods}
    return [_times(name, known.get(name), some) for name, some in blocks.items()]


def _times(name: str, method: Method | None, blocks: Sequence[EventBlock]) -> MethodTimes:
    whole = [t for b in blocks for e in b.events if e.name == _RUN for t in _raw(e)]
    runs = len(whole) or sum(_rounds(block) for block in blocks)
    spent: dict[tuple[int, str], list[float]] = {}
    unknown: dict[str, None] = {}
    for event in (event for block in blocks for event in operators_of(block)):
        at, place = event.instruction, event.delegate_debug_identifier
        if at is None:
            continue
        if method is None or not _fits(event, at, method):
            unknown[f"{event.name.removeprefix(_KERNEL)} at instruction {at}"] = None
            continue
        spent.setdefault((at, "" if place is None else str(place)), []).extend(_raw(event))
    timings = [
        Timing(at, place, sum(times) / max(runs, 1), len(times) / max(runs, 1))
        for (at, place), times in spent.items()
    ]
    timings.sort(key=lambda one: -one.ms)
    return MethodTimes(name, runs, sum(whole) / max(len(whole), 1), timings, list(unknown))


def _raw(event: Event) -> list[float]:
    return [] if event.perf_data is None else event.perf_data.raw


def _rounds(block: EventBlock) -> int:
    """How many runs a block has, if the trace does not time them as a whole: the fewest times of
    an event, as those in loops have more."""
    return min((len(_raw(event)) for event in operators_of(block)), default=0)


def _fits(event: Event, at: int, method: Method) -> bool:
    """Whether the method has what an event tells of."""
    if not 0 <= at < len(method.instructions):
        return False
    instruction = method.instructions[at]
    if event.is_delegated_op or event.name == _DELEGATE:
        return instruction.kind == "delegate"
    operator = event.name.removeprefix(_KERNEL)
    return instruction.kind == "kernel" and instruction.op.endswith(operator)
