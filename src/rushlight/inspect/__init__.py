"""Reports on the contents of a program: in the terminal, as JSON and as an interactive page."""

from rushlight.inspect.delegation import (
    DelegationBreakdown,
    DelegationInfo,
    format_delegated_graph,
    get_delegation_info,
    print_delegated_graph,
)
from rushlight.inspect.program import memory_of, report_of
from rushlight.inspect.report import ProgramReport
from rushlight.inspect.trace.events import Event, EventBlock, PerfData, TimeScale
from rushlight.inspect.trace.inspector import Inspector

__all__ = [
    "DelegationBreakdown",
    "DelegationInfo",
    "Event",
    "EventBlock",
    "Inspector",
    "PerfData",
    "ProgramReport",
    "TimeScale",
    "format_delegated_graph",
    "get_delegation_info",
    "memory_of",
    "print_delegated_graph",
    "report_of",
]
