"""One model in all its forms and in other runtimes, timed by turns in one run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from rushlight.errors import Code, RunError
from rushlight.peers import runtimes
from rushlight.peers.runtimes import RUNTIMES
from rushlight.peers.side import Side, SideError
from rushlight.peers.turns import take_turns

_TURNS = 10
_PACKAGES = Path(__file__).resolve().parents[2]  # the path from which our process imports us
_MISSING = ("ModuleNotFoundError", "ImportError")


@dataclass(frozen=True)
class Peer:
    """A runtime that is installed in some environment."""

    runtime: str
    python: str
    version: str

    @property
    def title(self) -> str:
        """Its name and version for tables."""
        return f"{RUNTIMES[self.runtime].title} {self.version}"


@dataclass(frozen=True)
class Candidate:
    """A file to be timed.

    Attributes:
        title: the name of its row.
        runtime, python: the runtime, and the interpreter of its environment.
        file: the runtime's file.
        options: options of `rushlight.load`, for our own files.
    """

    title: str
    runtime: str
    python: str
    file: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Row:
    """The measurements of one candidate.

    Attributes:
        title: the candidate's title.
        reason: why there are no figures; "" if there are.
        seconds: the time of each call.
        load: the time of the load, in seconds.
        memory: the peak bytes of loading and a first call; None if the system does not report it.
        error: the greatest difference from the expected outputs, relative to their largest value;
            None if no outputs are expected.
    """

    title: str
    reason: str = ""
    seconds: list[float] = field(default_factory=list)
    load: float = math.nan
    memory: int | None = None
    error: float | None = None

    @property
    def median(self) -> float:
        """The median seconds of a call."""
        return median(self.seconds)

    @property
    def p10_p90(self) -> tuple[float, float]:
        """The 10th and the 90th percentile."""
        if len(self.seconds) < 2:
            return self.seconds[0], self.seconds[0]
        cuts = quantiles(self.seconds, n=10, method="inclusive")
        return cuts[0], cuts[-1]


def find_peers(pythons: Sequence[str], names: Sequence[str]) -> list[Peer]:
    """The runtimes among `names` that are installed, each in the first environment that has it.

    Args:
        pythons: the interpreters of environments.
        names: the names of runtimes.

    Raises:
        RunError: an interpreter does not run.
    """
    peers: dict[str, Peer] = {}
    for python in pythons:
        try:
            with _side("", python, 1) as side:
                installed = side.call("installed")
        except (SideError, OSError) as error:
            reason = error.reason if isinstance(error, SideError) else str(error.strerror)
            raise RunError(
                f"--peer {python!r} does not run: {reason}; give the Python of an environment",
                code=Code.NOT_FOUND,
            ) from error
        for name in names:
            if name in installed and name not in peers:
                peers[name] = Peer(name, python, installed[name])
    return [peers[name] for name in names if name in peers]


def lower_for(
    peer: Peer, pythons: Sequence[str], program: str, folder: Path
) -> tuple[Candidate | None, str]:
    """Convert a program of ``torch.export.save`` to the runtime's file.

    It is made in the runtime's environment or, if that lacks a package for the export (torch,
    onnx), in the first of the others that has it.

    Returns:
        The candidate, or None and why it cannot be made.
    """
    if RUNTIMES[peer.runtime].lower is None:
        return Candidate(peer.title, peer.runtime, peer.python, program), ""
    file = folder / f"{peer.runtime}{RUNTIMES[peer.runtime].suffix}"
    reason = ""
    for python in dict.fromkeys((peer.python, *pythons)):
        try:
            with _side(peer.runtime, python, 1) as side:
                side.call("lower", runtime=peer.runtime, program=program, file=str(file))
            return Candidate(peer.title, peer.runtime, peer.python, str(file)), ""
        except SideError as error:
            reason = reason or error.reason
            if not error.reason.startswith(_MISSING):
                return None, error.reason
    return None, reason


def compare(
    candidates: Sequence[Candidate],
    data: str,
    *,
    threads: int,
    repeat: int,
    warmup: int,
    progress: Callable[[str], None] = lambda stage: None,
) -> list[Row]:
    """Time all candidates by turns.

    Args:
        candidates: the files to time; each runs in a process of its own.
        data: an .npz with flattened inputs ``in0`` ..., and outputs ``out0`` ... if they are known.
        threads: the number of threads for each.
        repeat: the least number of measured calls of each.
        warmup: the number of calls of each before all measured ones.
        progress: called with the name of each stage.

    Returns:
        A row for each candidate, in order.
    """
    rows = [Row(candidate.title) for candidate in candidates]
    with ExitStack() as stack:
        sides: dict[str, Side] = {}
        for i, (candidate, row) in enumerate(zip(candidates, rows, strict=True)):
            progress(f"load {candidate.title}")
            side = stack.enter_context(_side(candidate.runtime, candidate.python, threads))
            try:
                _open(candidate, row, side, data, threads)
                sides[str(i)] = side
            except SideError as error:
                row.reason = error.reason
        progress("time by turns")
        count = min(_TURNS, repeat)
        times = take_turns(sides, count, warmup=warmup, least=-(-repeat // count))
    for name, turns in times.items():
        rows[int(name)].seconds = [seconds for turn in turns for seconds in turn]
    return rows


def _open(candidate: Candidate, row: Row, side: Side, data: str, threads: int) -> None:
    opened = side.call(
        "open",
        runtime=candidate.runtime,
        file=candidate.file,
        data=data,
        threads=threads,
        **candidate.options,
    )
    row.load, row.memory = opened["seconds"], opened.get("run_peak")
    with np.load(data) as expected:
        if "out0" not in expected:
            return
        path = str(Path(data).with_name("results.npz"))
        side.call("outputs", path=path)
        with np.load(path) as outputs:
            row.error = _difference(expected, outputs)


def _difference(expected: Any, results: Any) -> float:
    """The greatest difference of any output, relative to its greatest expected number.

    It is infinite if shapes differ, or only one of two numbers is infinite or NaN.
    """
    worst = 0.0
    for name in (name for name in expected if name.startswith("out")):
        if name not in results or results[name].shape != expected[name].shape:
            return math.inf
        a, b = (np.asarray(x[name], np.complex128) for x in (expected, results))
        differ = ~((a == b) | (np.isnan(a) & np.isnan(b)))
        if not np.isfinite([a[differ], b[differ]]).all():
            return math.inf
        if differ.any():
            apart, scale = np.abs(a - b)[differ].max(), np.abs(a[np.isfinite(a)]).max()
            worst = max(worst, float(apart / scale) if scale else float(apart))
    return worst


def _side(runtime: str, python: str, threads: int) -> Side:
    """Start a process for a runtime; only our own can import this package."""
    environment = {}
    if runtime == "rushlight":
        path = os.environ.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(_PACKAGES), *([path] if path else [])])
    script = Path(runtimes.__file__)
    return Side(python, script, threads=threads, environment=environment)
