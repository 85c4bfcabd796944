"""`executorch.devtools`: records of exports, traces, bundled programs."""

from __future__ import annotations

_RECORD = "rushlight.record.etrecord"
_INSPECT = "rushlight.inspect"

MODULES: dict[str, dict[str, str]] = {
    "devtools": {
        "ETRecord": _RECORD,
        "Inspector": _INSPECT,
        "TimeScale": _INSPECT,
        "generate_etrecord": _RECORD,
        "parse_etrecord": _RECORD,
    },
    "devtools.backend_debug": {
        "DelegationBreakdown": _INSPECT,
        "DelegationInfo": _INSPECT,
        "get_delegation_info": _INSPECT,
        "print_delegation_info": _INSPECT,
    },
    "devtools.backend_debug.delegation_info": {
        "DelegationBreakdown": _INSPECT,
        "DelegationInfo": _INSPECT,
        "get_delegation_info": _INSPECT,
    },
    "devtools.etrecord": {
        "ETRecord": _RECORD,
        "generate_etrecord": _RECORD,
        "parse_etrecord": _RECORD,
    },
    "devtools.inspector": {
        "Event": _INSPECT,
        "EventBlock": _INSPECT,
        "Inspector": _INSPECT,
        "PerfData": _INSPECT,
        "TimeScale": _INSPECT,
    },
}

ABSENT: dict[str, str] = {}
