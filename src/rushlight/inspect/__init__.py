"""Reports on programs and runs: in the terminal, as JSON and as an interactive page.

Nothing here needs torch but the records of exports: `ETRecord`, `generate_etrecord`,
`parse_etrecord`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rushlight.inspect.delegation import (
    DelegationBreakdown,
    DelegationInfo,
    format_delegated_graph,
    get_delegation_info,
    print_delegated_graph,
    print_delegation_info,
)
from rushlight.inspect.program import memory_of, report_of
from rushlight.inspect.report import ProgramReport
from rushlight.inspect.trace.events import Event, EventBlock, PerfData, TimeScale
from rushlight.inspect.trace.inspector import Inspector
from rushlight.inspect.trace.numeric_gap import compare_results

if TYPE_CHECKING:
    from rushlight.record.etrecord import ETRecord, generate_etrecord, parse_etrecord

__all__ = [
    "DelegationBreakdown",
    "DelegationInfo",
    "ETRecord",
    "Event",
    "EventBlock",
    "Inspector",
    "PerfData",
    "ProgramReport",
    "TimeScale",
    "compare_results",
    "format_delegated_graph",
    "generate_etrecord",
    "get_delegation_info",
    "memory_of",
    "parse_etrecord",
    "print_delegated_graph",
    "print_delegation_info",
    "report_of",
]


def __getattr__(name: str) -> Any:
    if name in ("ETRecord", "generate_etrecord", "parse_etrecord"):
        return getattr(import_module("rushlight.record.etrecord"), name)
    raise AttributeError(f"module 'rushlight.inspect' has no attribute {name!r}")
