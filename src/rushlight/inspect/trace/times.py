"""The times of a trace by method and operator of the program that ran, for a report."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.inspect.model import MethodTimes, Timing
from rushlight.inspect.trace.events import Event, EventBlock
from rushlight.inspect.trace.identity import fit_of, mismatch_of
from rushlight.inspect.trace.inspector import Inspector
from rushlight.inspect.trace.origins import Origins
from rushlight.inspect.trace.statistics import operators_of

_RUN = "Method::execute"


def times_of(trace: Inspector, origins: Origins) -> list[MethodTimes]:
    """The times of the methods that a trace has runs of.

    Args:
        trace: its times must be in milliseconds.
        origins: of the program.
    """
    blocks: dict[str, list[EventBlock]] = {}
    for block in trace.event_blocks:
        if block.name == "Execute":
            blocks.setdefault(fit_of(block, origins).method, []).append(block)
    return [_times(name, some, origins) for name, some in blocks.items()]


def _times(name: str, blocks: Sequence[EventBlock], origins: Origins) -> MethodTimes:
    whole = [t for b in blocks for e in b.events if e.name == _RUN for t in _raw(e)]
    runs = len(whole) or sum(_rounds(block) for block in blocks)
    spent: dict[tuple[int, str], list[float]] = {}
    if name not in origins.methods:
        unknown = dict.fromkeys(fit_of(block, origins).mismatch for block in blocks)
        return MethodTimes(name, runs, sum(whole) / max(len(whole), 1), [], list(unknown))
    unknown = {}
    for event in (event for block in blocks for event in operators_of(block)):
        at, place = event.instruction, event.delegate_debug_identifier
        if at is None:
            continue
        mismatch = mismatch_of(event, name, origins)
        if mismatch:
            unknown[mismatch] = None
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
