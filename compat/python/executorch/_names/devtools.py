"""`executorch.devtools`: records of exports, traces, bundled programs."""

from __future__ import annotations

_RECORD = "rushlight.record.etrecord"
_INSPECT = "rushlight.inspect"
_BUNDLED = "rushlight.exir.bundled"
_OF_BUNDLES = dict.fromkeys(
    (
        "deserialize_from_flatbuffer_to_bundled_program",
        "serialize_from_bundled_program_to_flatbuffer",
    ),
    _BUNDLED,
)
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
        "BundledProgram": _BUNDLED,
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
    "devtools.bundled_program": {"BundledProgram": _BUNDLED},
    "devtools.bundled_program.config": dict.fromkeys(
        (
            "ConfigValue",
            "DataContainer",
            "MethodInputType",
            "MethodOutputType",
            "MethodTestCase",
            "MethodTestSuite",
        ),
        _BUNDLED,
    ),
    "devtools.bundled_program.core": {"BundledProgram": _BUNDLED},
    "devtools.bundled_program.serialize": dict(_OF_BUNDLES),
    "devtools.bundled_program.schema": dict.fromkeys(
        (
            "Bool",
            "BundledMethodTestCase",
            "BundledMethodTestSuite",
            "BundledProgram",
            "Double",
            "Int",
            "Tensor",
            "Value",
        ),
        "rushlight.schema.bundled_program",
    ),
    "devtools.etdump.serialize": dict.fromkeys(
        ("deserialize_from_etdump_flatcc", "serialize_to_etdump_flatcc"), "rushlight.exir.traces"
    ),
    "devtools.etdump.schema_flatcc": {
        **dict.fromkeys(
            (
                "AllocationEvent",
                "Allocator",
                "Bool",
                "DebugEvent",
                "Double",
                "Event",
                "Float",
                "Int",
                "ProfileEvent",
                "RunData",
                "Tensor",
                "TensorList",
                "Value",
                "ValueType",
            ),
            "rushlight.schema.etdump",
        ),
        "ETDumpFlatCC": "rushlight.schema.etdump:ETDump",
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
    "devtools.inspector.numerical_comparator": dict.fromkeys(
        ("L1Comparator", "MSEComparator", "NumericalComparatorBase", "SNRComparator"),
        "rushlight.exir.comparators",
    ),
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
    "devtools.intermediate_output_tap.tap_intermediate_outputs_": "use rushlight.tap.tap_outputs",
}
