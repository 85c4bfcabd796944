"""`executorch.devtools`: records of exports, traces, bundled programs."""

from __future__ import annotations

_RECORD = "rushlight.record.etrecord"
_INSPECT = "rushlight.inspect"
_TAP = dict.fromkeys(
    (
        "FULL_TENSOR",
        "NodeSelector",
        "STATS",
        "compare_aot_runtime_dataframe",
        "get_reducer",
        "select_all",
        "select_all_call_function",
        "select_any",
        "select_by_module_class",
        "select_by_module_path",
        "select_by_op_type",
        "select_not",
    ),
    "rushlight.tap",
)

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
        "compare_results": _INSPECT,
    },
    "devtools.intermediate_output_tap": {
        **_TAP,
        "tap_compare": "rushlight.tap",
    },
    "devtools.intermediate_output_tap._selectors": dict(_TAP),
    "devtools.intermediate_output_tap._reducers": {
        name: _TAP[name] for name in ("FULL_TENSOR", "STATS", "get_reducer")
    },
}

ABSENT: dict[str, str] = {
    "devtools.BundledProgram": "use rushlight.bundle(program, cases)",
    "devtools.bundled_program": "use rushlight.bundle(program, cases), rushlight.load_bundle(file)",
    "devtools.intermediate_output_tap.tap_intermediate_outputs_": "use rushlight.tap.tap_outputs",
}
