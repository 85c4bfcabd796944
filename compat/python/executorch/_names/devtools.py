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

_DEVTOOLS = "rushlight.devtools"
_SUITES = f"{_DEVTOOLS}.suites"
_BUNDLED = "rushlight.schema.bundled_program"
_BUNDLED_TABLES = dict.fromkeys(
    (
        "Bool",
        "BundledMethodTestCase",
        "BundledMethodTestSuite",
        "BundledProgram",
        "Double",
        "Int",
        "Tensor",
        "Value",
        "ValueUnion",
    ),
    _BUNDLED,
)
_SUITE_CONFIG = dict.fromkeys(
    (
        "ConfigValue",
        "DataContainer",
        "MethodInputType",
        "MethodOutputType",
        "MethodTestCase",
        "MethodTestSuite",
    ),
    _SUITES,
)
_COMPARATORS = dict.fromkeys(
    (
        "IntermediateOutputMapping",
        "L1Comparator",
        "MSEComparator",
        "NumericalComparatorBase",
        "SNRComparator",
    ),
    f"{_DEVTOOLS}.comparators",
)
_ETDUMP = "rushlight.schema.etdump"
_RULES = {
    "TapRule": f"{_DEVTOOLS}.taps",
    "TapSpec": "rushlight.tap:Tap",
    "find_tap_nodes": f"{_DEVTOOLS}.taps",
    "is_tap_node": f"{_DEVTOOLS}.taps",
    "tap_intermediate_outputs_": f"{_DEVTOOLS}.taps:tap_intermediate_outputs",
}

MODULES: dict[str, dict[str, str]] = {
    "devtools": {
        "BundledProgram": _SUITES,
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
        "print_delegation_info": _INSPECT,
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
        **_RULES,
        "StatReducer": "rushlight.tap:Reducer",
        "tap_compare": "rushlight.tap",
    },
    "devtools.bundled_program.config": dict(_SUITE_CONFIG),
    "devtools.bundled_program.core": {
        **_SUITE_CONFIG,
        "BundledProgram": _SUITES,
        "supported_program_type_table": _SUITES,
    },
    "devtools.bundled_program.schema": dict(_BUNDLED_TABLES),
    "devtools.bundled_program.schema.bundled_program_schema": dict(_BUNDLED_TABLES),
    "devtools.bundled_program.serialize": {
        "BundledProgram": _SUITES,
        "deserialize_from_flatbuffer_to_bundled_program": _SUITES,
        "serialize_from_bundled_program_to_flatbuffer": _SUITES,
    },
    "devtools.bundled_program.version": {
        "BUNDLED_PROGRAM_SCHEMA_VERSION": "rushlight.serialize.bundle:VERSION"
    },
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
            _ETDUMP,
        ),
        "ETDumpFlatCC": f"{_ETDUMP}:ETDump",
    },
    "devtools.etdump.serialize": {
        "deserialize_from_etdump_flatcc": f"{_ETDUMP}:unpack",
        "serialize_to_etdump_flatcc": f"{_ETDUMP}:pack",
    },
    "devtools.inspector.numerical_comparator": {
        **_COMPARATORS,
        "DebugHandle": f"{_DEVTOOLS}.comparators",
    },
    "devtools.inspector.numerical_comparator.l1_numerical_comparator": {"L1Comparator": _DEVTOOLS},
    "devtools.inspector.numerical_comparator.mse_numerical_comparator": {
        "MSEComparator": _DEVTOOLS
    },
    "devtools.inspector.numerical_comparator.numerical_comparator_base": {
        "IntermediateOutputMapping": f"{_DEVTOOLS}.comparators",
        "NumericalComparatorBase": _DEVTOOLS,
    },
    "devtools.inspector.numerical_comparator.snr_numerical_comparator": {
        "SNRComparator": _DEVTOOLS
    },
    "devtools.intermediate_output_tap._selectors": dict(_TAP),
    "devtools.intermediate_output_tap._reducers": {
        name: _TAP[name] for name in ("FULL_TENSOR", "STATS", "get_reducer")
    },
}

ABSENT: dict[str, str] = {
    "devtools.bundled_program.serialize": "the file's tables are read and written by "
    "serialize_from_bundled_program_to_flatbuffer and its counterpart deserialize_from_flatbuffer…",
    "devtools.debug_format": "a graph's nodes are read from EdgeProgramManager.exported_program()",
    "devtools.etdump.schema_flatcc": "a trace keeps no such value: see rushlight.schema.etdump",
    "devtools.etdump.serialize": "the schema is schema/etdump.fbs of the repository",
    "devtools.inspector.inspector_cli": "use `rushlight profile`",
    "devtools.inspector.parse_vgf_neural_statistics_delegate_metadata": "there is no VGF backend",
    "devtools.inspector.parse_vgf_neural_statistics_metadata": "there is no VGF backend",
    "devtools.inspector.vgf_neural_statistics": "there is no VGF backend",
    "devtools.intermediate_output_tap.custom_ops_lib": "the operator is torch.ops.rushlight.tap",
    "devtools.intermediate_output_tap.strip_taps_": "to_executorch replaces taps by their reducers",
    "devtools.pte_tool": "use `rushlight diff`",
    "devtools.scripts": "use `rushlight profile`, and Inspector.save_data_to_tsv",
    "devtools.size_analysis_tool": "use `rushlight inspect`, which counts the bytes of every part",
    "devtools.visualization": "use `rushlight inspect --html`",
}
