"""Traces as JSON that Chrome's viewer and Perfetto open: Google's Trace Event Format."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.inspect.model import Method, ProgramContents
from rushlight.inspect.trace.events import CALLS, FRAMEWORK_EVENTS, delegate_id, method_of
from rushlight.inspect.trace.origins import Origin, Origins
from rushlight.inspect.trace.statistics import line_of, module_of
from rushlight.schema import etdump as fb

Json = dict[str, Any]
_PROCESS = 1
_RUNTIME = 1  # the thread that runs instructions; backends follow
_DELEGATE, _OPERATOR = "DELEGATE_CALL", "OPERATOR_CALL"
_KERNEL = "native_call_"
_DROPPED = "Dropped"


def chrome_trace(
    dump: fb.ETDump, origins: Origins | None = None, program: ProgramContents | None = None
) -> Json:
    """A trace in the Trace Event Format, with times in microseconds from its first event.

    Methods and instructions are on one track and the operators inside of delegates on one for each
    backend, to which an arrow leads from the call. Counters show the planned memory in use.

    Args:
        dump: times must be in nanoseconds.
        origins: gives operators, lines and modules.
        program: the contents of the program that ran; None: no counters of memory.
    """
    writer = _Writer(dump, origins, program)
    groups = [group for run in dump.run_data for group in writer.run(run)]
    # Viewers nest events that begin together, as they do on a coarse clock, in the file's order.
    groups.sort(key=lambda group: group[0]["ts"])
    events = [event for group in groups for event in group]
    return {"traceEvents": [*writer.names(), *events], "displayTimeUnit": "ns"}


class _Writer:
    def __init__(
        self, dump: fb.ETDump, origins: Origins | None, program: ProgramContents | None
    ) -> None:
        starts = [
            event.profile_event.start_time
            for run in dump.run_data
            for event in run.events
            if event.profile_event is not None and run.name != _DROPPED
        ]
        self._begin = min(starts, default=0)
        self._origins = origins
        self._methods = {} if program is None else {m.name: m for m in program.methods}
        self._threads: dict[str, int] = {}
        self._arrows = 0

    def names(self) -> Iterator[Json]:
        """The names of the tracks."""
        yield _named("process_name", _RUNTIME, "rushlight")
        yield _named("thread_name", _RUNTIME, "instructions")
        for name, thread in self._threads.items():
            yield _named("thread_name", thread, name)

    def run(self, run: fb.RunData) -> Iterator[list[Json]]:
        """The events of one run, or of a load; each with the end of the arrow that it has."""
        if run.name == _DROPPED:
            return
        times = [event.profile_event for event in run.events if event.profile_event is not None]
        method = method_of(run)
        whole = [event for event in times if event.name in FRAMEWORK_EVENTS]
        for event in sorted(whole, key=lambda event: event.start_time - event.end_time):
            yield [self._complete(event.name or "", _RUNTIME, event, {"method": method})]
        inside: list[fb.ProfileEvent] = []
        for event in times:
            if event.name in FRAMEWORK_EVENTS or (event.instruction_id < 0 and event.name):
                continue  # of the whole run, or memory that was taken
            if not event.name:
                inside.append(event)
            elif event.name.startswith(_KERNEL):
                yield [self._instruction(event, method, event.name.removeprefix(_KERNEL))]
            elif event.name == _DELEGATE:
                yield from self._delegate(event, inside, method)
                inside.clear()
            elif event.name != _OPERATOR:
                yield [self._instruction(event, method, event.name)]
            if event.name in CALLS:
                yield from self._memory(event, method)

    def _delegate(
        self, call: fb.ProfileEvent, inside: Sequence[fb.ProfileEvent], method: str
    ) -> Iterator[list[Json]]:
        """The call of a delegate, what the delegate told of itself, and the arrow to it."""
        called = self._instruction(call, method, _DELEGATE)
        mine = sorted(inside, key=lambda event: event.start_time)
        if not mine:
            yield [called]
            return
        backend = self._origin(method, call, None)
        name = (backend.backend if backend is not None else None) or "delegate"
        thread = self._threads.setdefault(name, _RUNTIME + 1 + len(self._threads))
        self._arrows += 1
        arrow = {"name": "call", "cat": "delegate", "id": self._arrows, "pid": _PROCESS}
        yield [called, {**arrow, "ph": "s", "tid": _RUNTIME, "ts": called["ts"]}]
        for event in mine:
            place = delegate_id(event.delegate_debug_id_int, event.delegate_debug_id_str)
            origin = self._origin(method, event, place)
            label = ", ".join(node.op for node in origin.nodes) if origin is not None else ""
            told = {"instruction": event.instruction_id, "place": place, **_told(origin)}
            shown = self._complete(label or str(place), thread, event, told)
            end = {**arrow, "ph": "f", "bp": "e", "tid": thread, "ts": shown["ts"]}
            yield [shown, end] if event is mine[0] else [shown]

    def _instruction(self, event: fb.ProfileEvent, method: str, name: str) -> Json:
        origin = self._origin(method, event, None)
        if name == _DELEGATE and origin is not None and origin.backend:
            name = origin.backend
        told = {"instruction": event.instruction_id, **_told(origin)}
        return self._complete(name, _RUNTIME, event, told)

    def _memory(self, event: fb.ProfileEvent, method: str) -> Iterator[list[Json]]:
        """The bytes of planned memory that hold values when an instruction begins."""
        contents = self._methods.get(method)
        if contents is None:
            return
        live = _live(contents, event.instruction_id)
        counter = {
            "name": "planned memory in use",
            "ph": "C",
            "pid": _PROCESS,
            "ts": self._time(event.start_time),
            "args": {f"memory {identifier}": count for identifier, count in live.items()},
        }
        yield [counter]

    def _origin(
        self, method: str, event: fb.ProfileEvent, place: int | str | None
    ) -> Origin | None:
        if self._origins is None:
            return None
        return self._origins.origin(method, event.instruction_id, place)

    def _complete(self, name: str, thread: int, event: fb.ProfileEvent, told: Json) -> Json:
        return {
            "name": name,
            "cat": "runtime" if thread == _RUNTIME else "delegate",
            "ph": "X",
            "pid": _PROCESS,
            "tid": thread,
            "ts": self._time(event.start_time),
            "dur": max(event.end_time - event.start_time, 0) / 1e3,
            "args": told,
        }

    def _time(self, nanoseconds: int) -> float:
        return (nanoseconds - self._begin) / 1e3


def _named(what: str, thread: int, name: str) -> Json:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": thread, "args": {"name": name}}


def _told(origin: Origin | None) -> Json:
    if origin is None:
        return {}
    lines = [line for node in origin.nodes if (line := line_of(node.stack_trace))]
    modules = filter(None, (module_of(node.modules) for node in origin.nodes))
    return {
        "operators": [node.op for node in origin.nodes],
        "lines": list(dict.fromkeys(lines)),
        "modules": list(dict.fromkeys(modules)),
        "debug handles": origin.handles,
    }


def _live(method: Method, instruction: int) -> dict[int, int]:
    """The bytes in use in each memory at an instruction."""
    live = {}
    for arena in method.arenas:
        at = bisect.bisect_right([start for start, _ in arena.live], instruction)
        live[arena.memory_id] = arena.live[at - 1][1] if at else 0
    return live
