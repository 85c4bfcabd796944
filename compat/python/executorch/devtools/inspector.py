"""Traces of runs."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.inspect import Event, EventBlock, Inspector, PerfData, TimeScale, compare_results

__all__ = [
    "Event",
    "EventBlock",
    "Inspector",
    "PerfData",
    "TimeScale",
    "compare_results",
]

__getattr__ = absent(__name__, "Inspector.calculate_numeric_gap takes a distance by its name")
