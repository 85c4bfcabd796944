"""The tables of `engine.py`: speed beside the peers, shares of the peak, loads and memory."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np

from rushlight.files import write_text
from rushlight.peers.turns import middle

OURS = "rushlight"
SHORT = {OURS: "ours", "executorch": "ET", "onnxruntime": "ORT", "openvino": "OV"}
RESAMPLES, LOWER = 2000, 2.5  # percent


@dataclass(frozen=True)
class Speed:
    """One model on one number of threads.

    Attributes:
        times: seconds of each call, by engine and turn.
        flops: operations of its products, convolutions and attention.
        peak, bandwidth: operations and bytes per second that the machine reached meanwhile.
    """

    model: str
    threads: int
    times: Mapping[str, list[list[float]]]
    flops: int
    peak: float
    bandwidth: float

    @property
    def medians(self) -> dict[str, float]:
        """Seconds, by engine."""
        return {by: middle(turns) for by, turns in self.times.items()}

    def ratio(self, peers: Sequence[str], to: str = OURS) -> tuple[float, float]:
        """The best peer's median over ours, and the lower end of its confidence interval."""
        ours = _by_turn(self.times[to])
        theirs = np.stack([_by_turn(self.times[by]) for by in peers])
        ratio = np.median(theirs, axis=1).min() / np.median(ours)
        turns = np.random.default_rng(0).integers(len(ours), size=(RESAMPLES, len(ours)))
        best = np.median(theirs[:, turns], axis=2).min(axis=0)
        return float(ratio), float(np.percentile(best / np.median(ours[turns], axis=1), LOWER))


@dataclass(frozen=True)
class Loads:
    """Loads of one model.

    Attributes:
        rounds: by engine, then cold or not, what `side.measure_load` found.
        sizes: bytes of the files.
        exported: CPU seconds, by engine; None for a file that was there.
    """

    model: str
    rounds: Mapping[str, Mapping[bool, list[dict[str, float]]]]
    sizes: Mapping[str, int]
    exported: Mapping[str, float | None]

    def median(self, by: str, what: str, *, cold: bool) -> float | None:
        """The median of one figure over an engine's loads; None if there were none."""
        values = [one[what] for one in self.rounds[by][cold] if what in one]
        return median(values) if values else None


def _by_turn(turns: list[list[float]]) -> Any:
    return np.array([median(calls) for calls in turns])


def _peers(speed: Speed) -> list[str]:
    return [by for by in speed.times if by != OURS]


def say(speed: Speed) -> None:
    """Print one measurement on standard error at once."""
    times = "  ".join(f"{SHORT.get(by, by)} {1e3 * s:.2f}" for by, s in speed.medians.items())
    print(f"{speed.model}, {speed.threads} threads, ms: {times}", file=sys.stderr, flush=True)


def show(speeds: Sequence[Speed], loads: Sequence[Loads]) -> None:
    """Print all tables."""
    engines = list(speeds[0].times)
    _speed_table(speeds, engines)
    _peak_table(speeds, engines)
    _load_table(loads, engines)


def _speed_table(speeds: Sequence[Speed], engines: list[str]) -> None:
    peers = [by for by in engines if by != OURS]
    table = common.table_of(
        "Latency: medians in ms; peer / ours (lower end of its 95 % interval)",
        [
            *("model", "threads", *(SHORT[by] for by in engines)),
            *(f"{SHORT[by]} / ours" for by in peers[:1] if by == "executorch"),
            *(["best / ours"] if peers else []),
        ],
    )
    groups = [[by] for by in peers[:1] if by == "executorch"] + ([peers] if peers else [])
    for speed in speeds:
        ratios = [speed.ratio(group) for group in groups]
        table.add_row(
            *(speed.model, str(speed.threads)),
            *(f"{1e3 * seconds:.2f}" for seconds in speed.medians.values()),
            *(f"{ratio:.2f}x (≥ {low:.2f})" for ratio, low in ratios),
        )
    for threads in sorted({speed.threads for speed in speeds}):
        mine = [speed for speed in speeds if speed.threads == threads]
        means = [math.exp(np.mean([math.log(s.ratio(g)[0]) for s in mine])) for g in groups]
        table.add_row(
            *("geometric mean", str(threads), *("" for _ in engines)),
            *(f"{mean:.2f}x" for mean in means),
        )
    common.print_table(table)


def _peak_table(speeds: Sequence[Speed], engines: list[str]) -> None:
    least = min(speed.threads for speed in speeds)
    most = max(speed.threads for speed in speeds)
    table = common.table_of(
        "GFLOP of the model; peaks of the machine meanwhile: float32 GFLOP/s, GB/s read from "
        "memory; share of the first that each reaches, and what more threads gain",
        [
            *("model", "threads", "GFLOP", "GFLOP/s", "GB/s"),
            *(SHORT[by] for by in engines),
            *(f"{SHORT[by]} {least}→{most}" for by in engines if most > least),
        ],
    )
    first = {speed.model: speed.medians for speed in speeds if speed.threads == least}
    for speed in speeds:
        medians = speed.medians
        gains = [
            f"{first[speed.model][by] / medians[by]:.2f}x" if speed.threads > least else ""
            for by in engines
            if most > least
        ]
        table.add_row(
            *(speed.model, str(speed.threads), f"{speed.flops / 1e9:.2f}"),
            *(f"{speed.peak / 1e9:.0f}", f"{speed.bandwidth / 1e9:.1f}"),
            *(f"{speed.flops / medians[by] / speed.peak:.0%}" for by in engines),
            *gains,
        )
    common.print_table(table)


def _load_table(loads: Sequence[Loads], engines: list[str]) -> None:
    table = common.table_of(
        "Loads on one thread, in ms: the load, and from opening to the first output with a warm "
        "and a cold page cache; memory after the load and at its peak until the first output, "
        "times the file",
        [
            *("model", "engine", "export CPU s", "file MB", "load", "warm", "cold"),
            *("loaded", "peak"),
        ],
    )
    for load in loads:
        for by in engines:
            size = load.sizes[by]
            table.add_row(
                load.model if by == engines[0] else "",
                *(SHORT[by], _cell(load.exported[by], 1, ".1f"), f"{size / 1e6:.1f}"),
                _cell(load.median(by, "seconds", cold=False), 1e3, ".2f"),
                _cell(load.median(by, "first", cold=False), 1e3, ".1f"),
                _cell(load.median(by, "first", cold=True), 1e3, ".1f"),
                _cell(load.median(by, "resident", cold=False), 1 / size, ".2fx"),
                _cell(load.median(by, "run_peak", cold=False), 1 / size, ".2fx"),
            )
    common.print_table(table)


def _cell(value: float | None, factor: float, form: str) -> str:
    suffix = "x" if form.endswith("x") else ""
    return "-" if value is None else format(value * factor, form.removesuffix("x")) + suffix


def write(path: Path, speeds: Sequence[Speed], loads: Sequence[Loads]) -> None:
    """Write all figures as JSON."""
    document = {
        "speed": [{**asdict(speed), "medians": speed.medians} for speed in speeds],
        "loads": [
            {**asdict(load), "rounds": {by: {"cold": r[True], "warm": r[False]}
                                        for by, r in load.rounds.items()}}
            for load in loads
        ],
    }  # fmt: skip
    write_text(path, json.dumps(document, indent=1) + "\n")
