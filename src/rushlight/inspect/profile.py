"""Profiles of programs: the times of operators, beside their work and the machine's peaks."""

from __future__ import annotations

import dataclasses
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rushlight.inspect.model import Work
from rushlight.inspect.work import InstructionWork, Sizes, work_of
from rushlight.runtime.measures import TraceEvent
from rushlight.runtime.module import Module
from rushlight.runtime.peaks import Peaks
from rushlight.schema.codec import Buffer
from rushlight.schema.source import Source

_Key = tuple[str, int, str]  # method, instruction, place inside a delegate


@dataclass(slots=True)
class OperatorTime:
    """The time of one operator: a kernel call, a node inside a delegate, or a whole delegate that
    does not report its nodes.

    Attributes:
        name: the kernel, the kind of node ("Product+" has an epilogue), or the backend.
        method, instruction, place: its position; `place` is the id inside a delegate, or "".
        ns: nanoseconds in one run: the median over the runs.
        calls: the number of calls in one run.
        flops, bytes: the work in one run, from the sizes in the file; None if not known.
        nodes: the operators of the model that it was made from.
        sources: their Python lines; empty if they are not known.
        is_integer: whether it computes with integers.
    """

    name: str
    method: str
    instruction: int
    place: str
    ns: float
    calls: int
    flops: int | None = None
    bytes: int | None = None
    nodes: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    is_integer: bool = False

    @property
    def gflops(self) -> float | None:
        """GFLOP/s; for integers 10^9 operations per second."""
        return None if self.flops is None or not self.ns else self.flops / self.ns

    @property
    def gbytes(self) -> float | None:
        """GB/s of the values that it reads and writes, in memory or in a cache."""
        return None if self.bytes is None or not self.ns else self.bytes / self.ns

    def of_flops(self, peaks: Peaks) -> float | None:
        """Its rate of operations as a share of the machine's peak for this kind of number."""
        return None if self.gflops is None else self.gflops * 1e9 / self._peak(peaks)

    def least_ns(self, peaks: Peaks) -> float:
        """The least nanoseconds in which the machine could do its operations."""
        return (self.flops or 0) * 1e9 / self._peak(peaks)

    def _peak(self, peaks: Peaks) -> float:
        return peaks.integer_ops if self.is_integer else peaks.flops

    def of_bandwidth(self, peaks: Peaks) -> float | None:
        """Its bandwidth as a share of the memory's; above 1 if its data is in a cache."""
        return None if self.gbytes is None else self.gbytes * 1e9 / peaks.bandwidth


@dataclass(slots=True)
class Profile:
    """The profile of a method.

    Attributes:
        method: the method's name.
        runs: the number of runs.
        peaks: the machine's peaks on as many threads.
        total_ns: the time of a run, from the call in Python to its return: the median.
        outside_ns: the time of a run that is in no operator: the median.
        operators: the operators, the slowest first.
    """

    method: str
    runs: int
    peaks: Peaks
    total_ns: float
    outside_ns: float
    operators: list[OperatorTime]

    def to_json(self) -> dict[str, Any]:
        """The profile as dicts, lists, strings and numbers."""
        operators = [
            {
                **dataclasses.asdict(operator),
                "gflops": operator.gflops,
                "gbytes": operator.gbytes,
                "of_flops": operator.of_flops(self.peaks),
                "of_bandwidth": operator.of_bandwidth(self.peaks),
            }
            for operator in self.operators
        ]
        return {
            "method": self.method,
            "runs": self.runs,
            "peaks": self.peaks._asdict(),
            "total_ns": self.total_ns,
            "outside_ns": self.outside_ns,
            "operators": operators,
        }


def profile_of(
    source: str | os.PathLike[str] | Buffer,
    module: Module,
    method: str,
    call: Callable[[], object],
    *,
    runs: int,
    peaks: Peaks,
    sizes: Sizes | None = None,
) -> Profile:
    """Run a method several times and return its profile.

    Args:
        source: the program, a path or its bytes.
        module: the same program, loaded with trace=True.
        method: the method that `call` calls.
        call: runs the method once.
        runs: the number of runs, at least 1.
        peaks: the machine's peaks on the module's threads.
        sizes: the dynamic sizes in such a run, from `rushlight.inspect.work.sizes_of_run`.

    Raises:
        LoadError: the file cannot be read.
        RunError: a run fails.
    """
    work = work_of(source, sizes)
    totals: list[int] = []
    outside: list[int] = []
    spent: dict[_Key, list[int]] = defaultdict(list)
    calls: dict[_Key, int] = {}
    names: dict[_Key, str] = {}
    for _ in range(runs):
        module.trace.clear()
        start = time.perf_counter_ns()
        call()
        totals.append(time.perf_counter_ns() - start)
        mine: dict[_Key, list[int]] = defaultdict(list)
        events = module.trace.events()
        whole = Counter((e.method, e.instruction) for e in events if not e.inside)
        for event in _operator_events(events):
            key = (event.method, event.instruction, event.inside)
            mine[key].append(event.ns)
            names[key] = event.name
        outside.append(totals[-1] - sum(map(sum, mine.values())))
        for key, times in mine.items():
            spent[key].append(sum(times))
            # A delegate may report several times under one place in one call.
            count = whole[key[:2]] if key[2] else len(times)
            calls[key] = max(calls.get(key, 0), count)
    places: dict[tuple[str, int], set[str]] = defaultdict(set)
    for name, instruction, place in spent:
        places[name, instruction].add(place)
    inside = {at: work[at[0]][at[1]].timed(reported) for at, reported in places.items()}
    operators = [
        _operator(key, names[key], calls[key], median(times), work, inside[key[:2]])
        for key, times in spent.items()
    ]
    operators.sort(key=lambda operator: -operator.ns)
    return Profile(method, runs, peaks, median(totals), max(median(outside), 0), operators)


def _operator_events(events: Sequence[TraceEvent]) -> list[TraceEvent]:
    """The events of kernels, of nodes inside delegates, and of delegates that report no nodes."""
    inside = {(e.method, e.instruction) for e in events if e.inside}
    return [
        event
        for event in events
        if event.inside
        or event.kind == "kernel"
        or (event.kind == "delegate" and (event.method, event.instruction) not in inside)
    ]


def _operator(
    key: _Key,
    name: str,
    calls: int,
    ns: float,
    work: dict[str, list[InstructionWork]],
    inside: dict[str, Work],
) -> OperatorTime:
    method, instruction, place = key
    known = work[method][instruction]
    own = inside.get(place, Work(f"{name} {place}")) if place else known.whole
    if known.nodes and not place:  # a whole delegate has the lines of all its nodes
        own.sources = [s for work in known.inside.values() for s in work.sources]
    return OperatorTime(
        *(own.name, method, instruction, place, ns, calls),
        flops=None if own.flops is None else own.flops * calls,
        bytes=None if own.bytes is None else own.bytes * calls,
        nodes=own.nodes,
        sources=own.sources,
        is_integer=own.is_integer,
    )
