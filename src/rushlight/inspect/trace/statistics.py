"""Times of a trace put together: by module, line or kind; outliers; and two traces compared."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rushlight.errors import Code, RunError
from rushlight.inspect.trace.events import Event, EventBlock
from rushlight.schema.source import Source, frames_in

Key = Literal["module", "line", "kind", "operator"]
KEYS: tuple[Key, ...] = ("module", "line", "kind", "operator")
_WHOLE = ("OPERATOR_CALL", "MOVE_CALL", "JF_CALL", "FREE_CALL")
_DEVIATIONS = 5.0  # from the median, in median deviations, of a time that is an outlier
# Two-sided quantiles of Student's t at 95 %, by degrees of freedom.
_STUDENT = {
    1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 10: 2.23, 15: 2.13, 30: 2.04,
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Operators that share a module, a line, a kind or an operator.

    Attributes:
        key: the path of the innermost module, "model.py:12", the backend or "kernel", or the names
            of the operators.
        time: the mean time of a run in all of them, in the trace's target unit.
        share: of the time of all operators.
        events: how many operators.
    """

    key: str
    time: float
    share: float
    events: int


@dataclass(frozen=True)
class Outlier:
    """A time that is far from the others of the same event.

    Attributes:
        event: the event.
        run: the index of the run in its block.
        time: its time, in the trace's target unit.
        median: the median of all runs.
    """

    event: Event
    run: int
    time: float
    median: float


@dataclass(frozen=True)
class Change:
    """A time before and after a change.

    Attributes:
        name: what took the time; of an operator, its place and what it computes.
        before, after: the mean times in the traces' target unit, or the medians of runs by turns;
            nan if it is not there.
        ratio: after / before; of runs by turns, the median of the ratios of neighbours.
        low, high: the ends of the ratio's 95 % confidence interval. Of two traces it is Welch's
            interval of the difference of means, divided by `before` as if that were exact; of runs
            by turns, two of the ratios by their ranks, whatever their distribution.
    """

    name: str
    before: float
    after: float
    ratio: float
    low: float
    high: float

    @property
    def is_certain(self) -> bool:
        """Whether the interval leaves out 1, or the operator is in one trace only."""
        return math.isnan(self.ratio) or not self.low <= 1 <= self.high


@dataclass(frozen=True)
class OperatorChange(Change):
    """The change of an operator's time between two traces.

    Attributes:
        source: its module and its line of Python; empty if neither trace tells them.
    """

    source: Source


def operators_of(block: EventBlock) -> list[Event]:
    """The events that time is counted by: kernels, places inside delegates, and delegates that do
    not tell of places inside them."""
    inside = {event.instruction for event in block.events if event.is_delegated_op}
    return [
        event
        for event in block.events
        if event.instruction is not None
        and event.name not in _WHOLE
        and not (event.name == "DELEGATE_CALL" and event.instruction in inside)
    ]


def groups_of(blocks: Iterable[EventBlock], key: Key) -> list[Group]:
    """The operators of all blocks by a key, the longest first.

    Raises:
        RunError: there is no such key.
    """
    if key not in KEYS:
        raise RunError(
            f"by={key!r}: choose one of {', '.join(map(repr, KEYS))}", code=Code.INVALID_ARGUMENT
        )
    times: dict[str, list[float]] = {}
    for event in (event for block in blocks for event in operators_of(block)):
        if event.perf_data is not None:
            times.setdefault(_key(event, key), []).append(event.perf_data.avg)
    total = sum(map(sum, times.values())) or 1.0
    made = [Group(k, sum(t), sum(t) / total, len(t)) for k, t in times.items()]
    return sorted(made, key=lambda group: -group.time)


def _key(event: Event, key: Key) -> str:
    if key == "kind":
        return event.delegate_backend_name or "kernel"
    if key == "operator":
        return ", ".join(event.op_types) or event.name
    source = source_of(event)
    return source.position if key == "line" else source.module


def source_of(event: Event) -> Source:
    """The innermost module of an event's nodes, the first line of Python that one of them has, and
    their debug handle if they have one in common."""
    frames = (frame_of(trace) for trace in event.stack_traces.values())
    line = next((frame for frame in frames if frame.file), Source())
    module = module_of(max(event.module_hierarchy.values(), key=len, default={}))
    known = event.debug_handles
    handles = [known] if isinstance(known, int) else list(known or ())
    handle = handles[0] if len(handles) == 1 else 0
    return replace(line, module=module, operator=", ".join(event.op_types), handle=handle)


def module_of(modules: Mapping[str, Any]) -> str:
    """The path of the innermost module, "encoder.0"; "" for the model itself. Records have names
    of torch.export for keys, and paths with types for values; programs have only paths."""
    if not modules:
        return ""
    key, value = list(modules.items())[-1]
    path = value[0] if isinstance(value, tuple) and len(value) == 2 else key
    return str(path).removeprefix("L['self'].").removeprefix("L['self']")


def line_of(stack_trace: str | None) -> str:
    """The innermost line of a stack trace that is not torch's: "model.py:12"; "" if none is."""
    return frame_of(stack_trace).position


def frame_of(stack_trace: str | None) -> Source:
    """The innermost line of a stack trace that is not torch's; an empty one if none is."""
    frames = frames_in(stack_trace or "")
    mine = [f for f in frames if not re.search(r"[/\\]torch[/\\]", f.file)] or frames
    return mine[-1] if mine else Source()


def outliers_of(blocks: Iterable[EventBlock]) -> list[Outlier]:
    """The times that are further above their median than five median deviations, the farthest
    first. Events with fewer than five runs have none."""
    far = []
    for event in (event for block in blocks for event in block.events):
        times = np.array([] if event.perf_data is None else event.perf_data.raw)
        for run in np.nonzero(_is_outlier(times))[0]:
            far.append(Outlier(event, int(run), float(times[run]), float(np.median(times))))
    return sorted(far, key=lambda one: one.median - one.time)


def _is_outlier(times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if len(times) < 5:
        return np.zeros(len(times), bool)
    median = float(np.median(times))
    # Clocks have steps, and many times of a fast operator are equal.
    deviation = max(float(np.median(np.abs(times - median))), 0.05 * median)
    return times > median + _DEVIATIONS * deviation


def changes_between(
    before: Sequence[EventBlock], after: Sequence[EventBlock]
) -> list[OperatorChange]:
    """The operators of two traces of the same model, the greatest change of time first.

    An operator is the same if its instruction, its place inside a delegate and its name are. Times
    that `outliers_of` names are left out.
    """
    one, other = _operators(before), _operators(after)
    changes = []
    for name in dict.fromkeys([*one, *other]):
        sides = [side.get(name, _Operator(Source())) for side in (one, other)]
        change = _change(name, sides[0].times, sides[1].times)
        source = max((side.source for side in sides), key=lambda source: len(source.full))
        changes.append(OperatorChange(**vars(change), source=source))
    return sorted(changes, key=lambda c: -abs(np.nan_to_num(c.after) - np.nan_to_num(c.before)))


def change_of_turns(name: str, before: Sequence[float], after: Sequence[float]) -> Change:
    """The change of a time that was measured by turns, so that whatever else the machine does is
    the same for neighbours.

    Args:
        name: what was measured.
        before, after: the times; those with the same index were measured one after the other, and
            what one has more is left out.
    """
    count = min(len(before), len(after)) or None
    one, other = np.array(before[:count]), np.array(after[:count])
    if not len(one) or not len(other) or not one.all():
        a, b = (float(np.median(t)) if len(t) else math.nan for t in (one, other))
        return Change(name, a, b, math.nan, math.nan, math.nan)
    ratios = other / one
    low, high = median_interval(ratios.tolist())
    a, b, ratio = (float(np.median(t)) for t in (one, other, ratios))
    return Change(name, a, b, ratio, low, high)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of a median, whatever the distribution: the values whose ranks
    it lies between. From minus to plus infinity for fewer than six values."""
    count, ordered = len(values), sorted(values)
    below, rank = 0.5**count, 0  # the chance that at most `rank` values are below the median
    while rank < count and below <= 0.025:
        rank += 1
        below += math.comb(count, rank) * 0.5**count
    return (ordered[rank - 1], ordered[count - rank]) if rank else (-math.inf, math.inf)


@dataclass
class _Operator:
    """An operator's times in all runs, and where it comes from."""

    source: Source
    times: list[float] = field(default_factory=list)


def _operators(blocks: Sequence[EventBlock]) -> dict[str, _Operator]:
    operators: dict[str, _Operator] = {}
    for event in (event for block in blocks for event in operators_of(block)):
        if event.perf_data is not None:
            place = f"{event.instruction}"
            if event.is_delegated_op:
                place += f"/{event.delegate_debug_identifier}"
            what = ", ".join(event.op_types) or event.name
            operator = operators.setdefault(f"{place} {what}", _Operator(source_of(event)))
            operator.times.extend(event.perf_data.raw)
    return operators


def _change(name: str, before: Sequence[float], after: Sequence[float]) -> Change:
    one, other = (t[~_is_outlier(t)] for t in (np.array(before), np.array(after)))
    if not len(one) or not len(other) or not one.mean():
        a, b = (float(times.mean()) if len(times) else math.nan for times in (one, other))
        return Change(name, a, b, math.nan, math.nan, math.nan)
    a, b = float(one.mean()), float(other.mean())
    parts = [float(t.var(ddof=1)) / len(t) if len(t) > 1 else 0.0 for t in (one, other)]
    half = 0.0
    if sum(parts):
        freedom = sum(parts) ** 2 / sum(
            part**2 / (len(t) - 1) for part, t in zip(parts, (one, other), strict=True) if part
        )
        half = _student(freedom) * math.sqrt(sum(parts)) / a
    return Change(name, a, b, b / a, b / a - half, b / a + half)


def _student(freedom: float) -> float:
    below = [degrees for degrees in _STUDENT if degrees <= max(freedom, 1.0)]
    return 1.96 if freedom > 60 else _STUDENT[max(below)]
