"""Processes timed by turns, so that whatever else the machine does slows all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

from rushlight.peers.side import Side

_REST = 0.02  # seconds: longer than threads of any runtime look for work before they sleep
_TURN = 0.05  # seconds of measured calls
_MAX_CALLS = 50


def take_turns(
    sides: Mapping[str, Side],
    turns: int,
    *,
    between: Callable[[], None] | None = None,
    warmup: int = 1,
    least: int = 1,
) -> dict[str, list[list[float]]]:
    """Time calls of what is open in each of `sides`.

    A turn begins with a rest and a call that is not counted, and has as many calls as take
    `_TURN`; it comes around to everybody before anybody has the next one.

    Args:
        sides: processes of `runtimes`, by name.
        turns: of each; at least 1.
        between: is called a few times in between, at the beginning too.
        warmup: calls of each that are not counted, before all turns.
        least: calls in a turn at least.

    Returns:
        For each side and turn, the seconds of its calls.
    """
    calls = {}
    for name, side in sides.items():
        first = min(side.call("latency", calls=2, warmup=warmup))
        calls[name] = max(least, min(_MAX_CALLS, int(_TURN / max(first, 1e-6))))
    times: dict[str, list[list[float]]] = {name: [] for name in sides}
    for turn in range(turns):
        if between is not None and turn % max(turns // 3, 1) == 0:
            between()
        for name, side in sides.items():
            time.sleep(_REST)
            times[name].append(side.call("latency", calls=calls[name], warmup=1))
    return times


def middle(turns: list[list[float]]) -> float:
    """The median over turns of the median of each turn's calls, in seconds."""
    return median(median(calls) for calls in turns)
