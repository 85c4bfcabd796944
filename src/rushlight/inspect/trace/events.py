"""Events of a trace, with those of equal runs put together: `Event`, `EventBlock`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from rushlight.errors import Code, RunError
from rushlight.inspect.trace.etdump import value_of
from rushlight.schema import etdump as fb
from rushlight.schema.codec import Buffer

FRAMEWORK_EVENTS = (
    *("Method::init", "Method::execute", "Program::load_method"),
    *("rushlight::events", "rushlight::values"),
)
"""Events that are no operators; the last two say how many events and values were lost."""
CALLS = ("OPERATOR_CALL", "DELEGATE_CALL", "MOVE_CALL", "JF_CALL", "FREE_CALL")
"""The names of whole instructions, which the events inside them precede."""


class TimeScale(Enum):
    """A unit of time."""

    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"
    CYCLES = "cycles"


_PER_SECOND = {TimeScale.NS: 1e9, TimeScale.US: 1e6, TimeScale.MS: 1e3, TimeScale.S: 1.0}


def time_factor(source: TimeScale, target: TimeScale) -> float:
    """By what a time in `source` is divided to become one in `target`.

    Raises:
        RunError: one of them is cycles and the other is not.
    """
    if source == target:
        return 1.0
    if TimeScale.CYCLES in (source, target):
        raise RunError(
            f"source_time_scale={source.name}, target_time_scale={target.name}: cycles are no "
            "time; give CYCLES for both",
            code=Code.INVALID_ARGUMENT,
        )
    return _PER_SECOND[source] / _PER_SECOND[target]


@dataclass
class PerfData:
    """The times of an event in all runs, in the target's unit."""

    raw: list[float]

    @property
    def p10(self) -> float:
        """The 10th percentile."""
        return float(np.percentile(self.raw, 10))

    @property
    def p50(self) -> float:
        """The median."""
        return float(np.percentile(self.raw, 50))

    @property
    def p90(self) -> float:
        """The 90th percentile."""
        return float(np.percentile(self.raw, 90))

    @property
    def avg(self) -> float:
        """The mean."""
        return float(np.mean(self.raw))

    @property
    def min(self) -> float:
        """The shortest."""
        return min(self.raw)

    @property
    def max(self) -> float:
        """The longest."""
        return max(self.raw)


@dataclass
class Event:
    """An operator, or another stretch of time, in all runs of a block.

    Attributes:
        name: the runtime's; inside a delegate, its id for the place.
        perf_data: the times; None for values without times.
        op_types: the operators of the model that it was made from.
        delegate_debug_identifier: the delegate's id for a place in it; None outside of delegates.
        debug_handles: those of the ETRecord or the program; None without both.
        num_outputs: how many values the instruction gives.
        stack_traces: by node of the graph, the Python lines that it comes from.
        module_hierarchy: by node, the modules that it is in, from the outermost.
        is_delegated_op: whether it is inside a delegate.
        delegate_backend_name: the backend's.
        debug_data: the values that were recorded.
        delegate_debug_metadatas: what the backend told, for each run; or what the parser made.
        start_time: of each run, in the unit of the source.
    """

    name: str
    perf_data: PerfData | None = None
    op_types: list[str] = field(default_factory=list)
    delegate_debug_identifier: int | str | None = None
    debug_handles: int | Sequence[int] | None = None
    num_outputs: int = 1
    stack_traces: dict[str, str | None] = field(default_factory=dict)
    module_hierarchy: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_delegated_op: bool = False
    delegate_backend_name: str | None = None
    debug_data: list[Any] = field(default_factory=list)
    delegate_debug_metadatas: Any = field(default_factory=list)
    start_time: list[int] = field(default_factory=list)
    _instruction_id: int | None = None
    _backend: str = ""

    @property
    def instruction(self) -> int | None:
        """The index of its instruction; None for an event of a whole run."""
        is_whole = self.name in FRAMEWORK_EVENTS
        return None if is_whole or self._instruction_id == -1 else self._instruction_id

    @property
    def backend(self) -> str:
        """Of the call of a delegate, its backend by the trace itself; "" if that does not tell."""
        return self._backend

    def as_dict(self, units: str = "") -> dict[str, Any]:
        """A row of a table."""
        times = self.perf_data
        row: dict[str, Any] = {"event_name": self.name, "raw": times.raw if times else None}
        for name in ("p10", "p50", "p90", "avg", "min", "max"):
            row[name + units] = getattr(times, name) if times else None
        few = len(self.op_types) < 5
        return {
            **row,
            "op_types": self.op_types if few else _shortened(self.op_types),
            "delegate_debug_identifier": self.delegate_debug_identifier,
            "stack_traces": self.stack_traces,
            "module_hierarchy": self.module_hierarchy,
            "is_delegated_op": self.is_delegated_op,
            "delegate_backend_name": self.delegate_backend_name,
            "debug_data": self.debug_data,
            "start_time": self.start_time or None,
        }


def _shortened(names: Sequence[str]) -> str:
    return f"['{names[0]}', '{names[1]}' ... '{names[-1]}'] ({len(names)} total)"


@dataclass
class EventBlock:
    """The runs of a method that took the same way, or its load.

    Attributes:
        name: "Default" for a load, "Execute" for runs; "Dropped" says what was lost.
        events: in the order in which they ended.
        source_time_scale, target_time_scale: the units.
        bundled_input_index: the test case of a bundled program; None if there is none.
        run_output: the outputs of the method, if they were recorded.
        reference_output: those that the ETRecord or the bundled program has for the test case.
        method: the method's name; "" if the trace does not tell.
        memory: the bytes that were taken of each memory, the most of all runs: by a load "planned
            memory 1" and the like, and "structures"; by runs "scratch", the most of an instruction.
    """

    name: str
    events: list[Event] = field(default_factory=list)
    source_time_scale: TimeScale = TimeScale.NS
    target_time_scale: TimeScale = TimeScale.MS
    bundled_input_index: int | None = None
    run_output: list[Any] = field(default_factory=list)
    reference_output: list[Any] | None = None
    method: str = ""
    memory: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def _gen_from_etdump(
        etdump: fb.ETDump,
        source_time_scale: TimeScale = TimeScale.NS,
        target_time_scale: TimeScale = TimeScale.MS,
        output_buffer: Buffer | None = None,
        delegate_metadata_parser: Parser | None = None,
        delegate_time_scale_converter: Converter | None = None,
    ) -> list[EventBlock]:
        """`blocks_of`, by ExecuTorch's name."""
        return blocks_of(
            *(etdump, output_buffer, source_time_scale, target_time_scale),
            *(delegate_time_scale_converter, delegate_metadata_parser),
        )

    def to_dataframe(
        self, include_units: bool = False, include_delegate_debug_data: bool = False
    ) -> Any:
        """The events as a pandas DataFrame, a row for each."""
        units = f" ({self.target_time_scale.value})" if include_units else ""
        rows = []
        for event in self.events:
            row = {"event_block_name": self.name, **event.as_dict(units)}
            if include_delegate_debug_data and event.delegate_debug_metadatas:
                told = event.delegate_debug_metadatas
                row |= told if isinstance(told, dict) else {"delegate_debug_metadata": told}
            rows.append(row)
        return pandas().DataFrame(rows)


def pandas() -> Any:
    """The package pandas.

    Raises:
        RunError: it is not installed.
    """
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise RunError(
            "a DataFrame needs pandas, which is not installed: pip install pandas, or read "
            "Inspector.event_blocks",
            code=Code.NOT_FOUND,
        ) from None


_Place = tuple[int, int, int, str | None]  # chain, instruction, and the delegate's id
_Key = tuple[int, int, int, str | None, str | None]  # the same, and the event's name
Converter = Callable[[int | str, float], float]
Parser = Callable[[list[bytes]], Any]


@dataclass
class _Parts:
    """What a run has at one place."""

    times: list[fb.ProfileEvent] = field(default_factory=list)
    values: list[fb.DebugEvent] = field(default_factory=list)


@dataclass
class _Runs:
    """Runs that have the same events."""

    parts: dict[_Key, list[_Parts]] = field(default_factory=dict)
    outputs: list[fb.Value] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)


def blocks_of(
    dump: fb.ETDump,
    buffer: Buffer | None,
    source: TimeScale,
    target: TimeScale,
    converter: Converter | None,
    parser: Parser | None,
) -> list[EventBlock]:
    """The blocks of a trace, in the order of their first runs.

    Args:
        dump: the trace.
        buffer: its debug buffer; None for values that are not shown.
        source, target: the units of its times, and of those that are wanted.
        converter: makes a time of the target's unit from a delegate's id and a time; None: as all.
        parser: makes what is shown from a backend's metadata of all runs.
    """
    groups: dict[tuple[Any, ...], _Runs] = {}
    for run in dump.run_data:
        parts, outputs = _places(run)
        signature = (run.name, run.bundled_input_index, method_of(run), tuple(parts))
        runs = groups.setdefault(signature, _Runs())
        for key, one in parts.items():
            runs.parts.setdefault(key, []).append(one)
        runs.outputs = runs.outputs or outputs
        for memory, taken in _memory(run):
            runs.memory[memory] = max(taken, runs.memory.get(memory, 0))
    divisor = time_factor(source, target)
    blocks = []
    for (name, index, method, _), runs in groups.items():
        events = [
            _event(key, parts, buffer, divisor, converter, parser)
            for key, parts in runs.parts.items()
        ]
        blocks.append(
            EventBlock(
                name,
                events,
                source,
                target,
                None if index < 0 else index,
                [value_of(value, buffer) for value in runs.outputs],
                method=method,
                memory=runs.memory,
            )
        )
    return blocks


def _memory(run: fb.RunData) -> Iterator[tuple[str, int]]:
    """The memories of which a run took bytes."""
    for event in run.events:
        taken = event.allocation_event
        if taken is not None and 1 <= taken.allocator_id <= len(run.allocators):
            yield run.allocators[taken.allocator_id - 1].name, taken.allocation_size


def method_of(run: fb.RunData) -> str:
    """The name of a run's method, which Rushlight keeps with the event of the whole run."""
    for event in run.events:
        profile = event.profile_event
        if profile is not None and profile.name in FRAMEWORK_EVENTS[:2]:
            return bytes(profile.delegate_debug_metadata or b"").decode(errors="replace")
    return ""


def _places(run: fb.RunData) -> tuple[dict[_Key, _Parts], list[fb.Value]]:
    """What a run has at each place, in the order of the first events there; and its outputs.

    An instruction in a loop has all its rounds at one place.
    """
    places: dict[_Key, _Parts] = {}
    outputs: list[fb.Value] = []
    values: dict[_Place, list[fb.DebugEvent]] = {}
    for event in run.events:
        debug, profile = event.debug_event, event.profile_event
        if debug is not None and debug.debug_entry is not None:
            flag = debug.debug_entry.output
            if flag is not None and flag.bool_val:
                outputs.append(debug.debug_entry)
                continue
            at = (
                *(_signed(debug.chain_index), debug.instruction_id, debug.delegate_debug_id_int),
                debug.delegate_debug_id_str,
            )
            values.setdefault(at, []).append(debug)
        elif profile is not None:
            at = (
                *(profile.chain_index, profile.instruction_id, profile.delegate_debug_id_int),
                profile.delegate_debug_id_str,
            )
            places.setdefault((*at, profile.name), _Parts()).times.append(profile)
    for key, parts in places.items():
        parts.values = values.get(key[:4], [])
    timed = {key[:4] for key in places}
    for at, recorded in values.items():
        if at not in timed:
            places[(*at, None)] = _Parts(values=recorded)
    return places, outputs


def delegate_id(number: int, text: str | None) -> int | str | None:
    """A delegate's id for a place in it, of the two fields that an event has for it; None outside
    of delegates."""
    return number if number >= 0 else text or None


def _signed(chain: int) -> int:
    return chain - (1 << 64) if chain >= 1 << 63 else chain


def _event(
    key: _Key,
    runs: Sequence[_Parts],
    buffer: Buffer | None,
    divisor: float,
    converter: Converter | None,
    parser: Parser | None,
) -> Event:
    _, instruction, number, text, name = key
    identifier = delegate_id(number, text)
    if name is None:  # values alone
        name = next((value.name for parts in runs for value in parts.values if value.name), None)
    event = Event(
        name or "" if identifier is None else str(identifier),
        delegate_debug_identifier=identifier,
        is_delegated_op=identifier is not None,
        _instruction_id=instruction,
    )
    times, told = [], []
    for parts in runs:
        for one in parts.times:
            elapsed = one.end_time - one.start_time
            if identifier is not None and converter is not None:
                start = converter(event.name, float(one.start_time))
                times.append(converter(event.name, float(one.end_time)) - start)
            else:
                times.append(elapsed / divisor)
            event.start_time.append(one.start_time)
            told.append(bytes(one.delegate_debug_metadata or b""))
    event.perf_data = PerfData(times) if times else None
    if event.name == "DELEGATE_CALL" and told:
        event._backend = told[0].decode(errors="replace")
    if identifier is not None and any(told):
        event.delegate_debug_metadatas = parser(told) if parser is not None else told
    last = next((parts.values for parts in reversed(runs) if parts.values), [])
    event.debug_data = [
        value_of(value.debug_entry, buffer) for value in last if value.debug_entry is not None
    ]
    return event
