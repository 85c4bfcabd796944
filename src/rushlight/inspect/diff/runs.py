"""Runs a method of two programs on the same inputs by turns: results and times."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from rushlight.errors import RunError
from rushlight.inspect.diff.model import OutputDiff, RunDiff
from rushlight.inspect.diff.names import operator_of
from rushlight.inspect.distance import errors_of, figures
from rushlight.inspect.trace.inspector import Inspector
from rushlight.inspect.trace.statistics import Change, change_of_turns, median_interval
from rushlight.runtime.module import Method, Module

_NS_PER_MS = 1e6
_ROUNDING_OPERATORS = "quantized_decomposed."  # left out, so that both precisions share names
_WARMUP = 3
_TRACED = 10  # runs of each program
# In proportion to the greatest magnitude: about the square root of the dtype's precision.
_ROUNDINGS = {2: 3e-2, 4: 3e-4, 8: 1.5e-8, 16: 1.5e-8}


@dataclass(frozen=True)
class Side:
    """One of two programs that run.

    Attributes:
        path: of its file.
        module: the program, loaded.
        traced: loads it to be traced.
        method: the name of its method.
        inputs: flattened, as it takes them.
    """

    path: str | os.PathLike[str]
    module: Module
    traced: Callable[[], Module]
    method: str
    inputs: Sequence[Any]


def run_both(before: Side, after: Side, repeat: int) -> RunDiff:
    """Run both programs.

    Args:
        before, after: the programs.
        repeat: how often each is timed, by turns; 0 compares the results alone.

    Raises:
        LoadError: one of them cannot be loaded to be traced.
        RunError: the first run fails.
    """
    sides = (before, after)
    methods = [side.module[side.method] for side in sides]
    results = [m.call_values(list(s.inputs)) for m, s in zip(methods, sides, strict=True)]
    made = RunDiff(", ".join(map(_type_of, before.inputs)))
    made.outputs = list(outputs_between([m.contract.out_spec.paths() for m in methods], results))
    if repeat:
        calls = [_call(m, s.inputs) for m, s in zip(methods, sides, strict=True)]
        try:
            one, other = by_turns(calls, repeat)
            made.latency, made.runs = change_of_turns("latency", one, other), repeat
            made.after_interval = median_interval(other)
            made.kinds, made.note = _by_operator(sides)
            made.kinds_note = "operators are of traced runs"
        except RunError as error:  # such as a cache that is full after some runs
            made.note = f"a run failed while it was timed: {error}"
    return made


def _call(method: Method, inputs: Sequence[Any]) -> Callable[[], object]:
    args, kwargs = method.contract.in_spec.unflatten(iter(inputs))
    return lambda: method.call(args, kwargs)


def by_turns(calls: Sequence[Callable[[], object]], repeat: int) -> list[list[float]]:
    """The milliseconds of each of two calls; who begins a turn changes with every turn.

    Args:
        calls: both.
        repeat: how often each is timed.
    """
    for call in calls:
        for _ in range(_WARMUP):
            call()
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(repeat):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            start = time.perf_counter_ns()
            calls[i]()
            times[i].append((time.perf_counter_ns() - start) / _NS_PER_MS)
    return times


# --- outputs --------------------------------------------------------------------------------------


def outputs_between(
    paths: Sequence[Sequence[str]], results: Sequence[Sequence[Any]]
) -> Iterable[OutputDiff]:
    """Two programs' outputs beside each other.

    Args:
        paths: the names of each program's outputs.
        results: their values.
    """
    for i, values in enumerate(zip_longest(*results, fillvalue=_Absent)):
        path = next(names[i] for names in paths if i < len(names))
        yield _output(path or "output", *values)


class _Absent:
    """Stands for an output that a program does not have."""


def _output(name: str, before: Any, after: Any) -> OutputDiff:
    types = _type_of(before), _type_of(after)
    one, other = _array(before), _array(after)
    if one is None or other is None:
        equal = before is not _Absent and after is not _Absent and bool(before == after)
        return OutputDiff(name, *types, departs=not equal)
    if one.shape != other.shape:
        return OutputDiff(name, *types)
    far = figures(other, one)
    errors = errors_of(other, one)
    place = np.unravel_index(int(errors.argmax()), one.shape) if errors.size else ()
    relative = far.max_error / far.max_value if far.max_value else far.max_error
    return OutputDiff(
        *(name, *types, far.max_error, relative, far.sqnr, far.cosine),
        tuple(int(i) for i in place) if far.max_error else (),
        relative > max(_rounding(one.dtype), _rounding(other.dtype)),
    )


def _array(value: Any) -> np.ndarray[Any, Any] | None:
    """A value as an array; None if it is no tensor and no number."""
    if isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        return np.asarray(value)
    return None


def _rounding(dtype: np.dtype[Any]) -> float:
    is_exact = dtype == np.bool_ or np.issubdtype(dtype, np.integer)
    return 0.0 if is_exact else _ROUNDINGS.get(dtype.itemsize, 3e-1)  # narrower ones of 8 bits


def _type_of(value: Any) -> str:
    if value is _Absent:
        return ""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    return repr(value)


# --- times by operator ----------------------------------------------------------------------------


def _by_operator(sides: Sequence[Side]) -> tuple[list[Change], str]:
    """The operators whose time was traced, those that changed most first; and a note."""
    modules = [side.traced() for side in sides]
    calls = [_call(m[s.method], s.inputs) for m, s in zip(modules, sides, strict=True)]
    for call in calls:
        call()
    series: list[list[dict[str, float]]] = [[], []]
    for turn in range(_TRACED):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            modules[i].trace.clear()
            calls[i]()
            if any(modules[i].trace.dropped):
                return [], "a traced run has more events than there is room for"
            inspector = Inspector(etdump_data=modules[i].trace.to_bytes()[0], program=sides[i].path)
            series[i].append(_times_of(inspector))
    names = dict.fromkeys(name for runs in series for run in runs for name in run)
    changes = [
        change_of_turns(name, *([run[name] for run in runs if name in run] for runs in series))
        for name in names
    ]
    return sorted(changes, key=_size_of_change), ""


def _times_of(inspector: Inspector) -> dict[str, float]:
    """The milliseconds of a run by what was computed, in names that all backends share."""
    times: dict[str, float] = {}
    for group in inspector.group_by("operator"):
        names = [operator_of(name) for name in group.key.split(", ")]
        computed = [name for name in names if not name.startswith(_ROUNDING_OPERATORS)]
        name = ", ".join(computed or names)
        times[name] = times.get(name, 0.0) + group.time
    return times


def _size_of_change(change: Change) -> float:
    return -abs(float(np.nan_to_num(change.after)) - float(np.nan_to_num(change.before)))
