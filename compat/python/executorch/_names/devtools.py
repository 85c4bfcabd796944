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
_GRAPHS = f"{_DEVTOOLS}.operator_graph"
_VALUES = f"{_DEVTOOLS}.values"
_BASE_GRAPH = dict.fromkeys(("Node", "OperatorGraph", "OperatorNode", "ValueNode"), _GRAPHS)
_EVENTS = "rushlight.inspect.trace.events"
_INSPECTOR_TOOLS = {
    **dict.fromkeys(
        (
            "DebugHandle",
            "NodeFilter",
            "calculate_cosine_similarity",
            "calculate_mse",
            "calculate_snr",
            "convert_to_float_tensor",
            "find_op_names",
            "find_populated_event",
            "get_aot_debug_handle_to_op_name_mapping",
            "is_inference_output_equal",
            "map_runtime_aot_intermediate_outputs",
            "merge_runtime_overlapping_debug_handles",
        ),
        _VALUES,
    ),
    **dict.fromkeys(
        (
            "EDGE_DIALECT_GRAPH_KEY",
            "create_debug_handle_to_op_node_mapping",
            "gen_graphs_from_etrecord",
        ),
        _GRAPHS,
    ),
    "TimeScale": _EVENTS,
    "calculate_time_scale_factor": f"{_EVENTS}:time_factor",
    "compare_results": f"{_DEVTOOLS}.inspector",
    "propagate_back_debug_handle": "rushlight.record.handles",
}
_GENERATED = "devtools.bundled_program.serialize.generated"
_TABLE_MODULES = f"{_DEVTOOLS}.bundled_tables"
# By table, its fields, and those that are vectors.
_FIELDS = {
    "Bool": ("BoolVal", ""),
    "BundledMethodTestCase": ("Inputs ExpectedOutputs", "Inputs ExpectedOutputs"),
    "BundledMethodTestSuite": ("MethodName TestCases", "TestCases"),
    "BundledProgram": ("Version MethodTestSuites Program", "MethodTestSuites Program"),
    "Double": ("DoubleVal", ""),
    "Int": ("IntVal", ""),
    "Tensor": ("ScalarType Sizes Data DimOrder", "Sizes Data DimOrder"),
    "Value": ("ValType Val", ""),
}


def _table_module(table: str, fields: str, vectors: str) -> dict[str, str]:
    functions = ["Start", "End", *(f"Add{field}" for field in fields.split())]
    functions += [f"Start{field}Vector" for field in vectors.split()]
    names = [table, f"{table}T", "np", *functions, *(f"{table}{name}" for name in functions)]
    return {name: f"{_TABLE_MODULES}:{table}.{name}" for name in names}


_ETDUMP = "rushlight.schema.etdump"
_SCHEMAS = f"{_DEVTOOLS}.schema_files"
_VGF = f"{_DEVTOOLS}.vgf_statistics"
_STATISTICS = (
    "DelegateMetadataBytes",
    "SCHEMA",
    "SCHEMA_VERSION",
    "parse_vgf_neural_statistics_delegate_metadata",
    "parse_vgf_neural_statistics_metadata",
)
_EXPLORER = dict.fromkeys(
    (
        "ModelExplorerServer",
        "SingletonModelExplorerServer",
        "visualize",
        "visualize_graph",
        "visualize_model_explorer",
    ),
    f"{_DEVTOOLS}.visualization",
)
_RULES = {
    "TapRule": f"{_DEVTOOLS}.taps",
    "TapSpec": "rushlight.tap:Tap",
    "find_tap_nodes": f"{_DEVTOOLS}.taps",
    "is_tap_node": f"{_DEVTOOLS}.taps",
    "tap_intermediate_outputs_": f"{_DEVTOOLS}.taps:tap_intermediate_outputs",
    "strip_taps_": f"{_DEVTOOLS}.taps:strip_taps",
    "StatReducer": f"{_DEVTOOLS}.taps",
    "tap_compare": f"{_DEVTOOLS}.taps",
}

MODULES: dict[str, dict[str, str]] = {
    "devtools": {
        "BundledProgram": _SUITES,
        "ETRecord": _RECORD,
        "Inspector": f"{_DEVTOOLS}.inspector",
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
    "devtools.scripts": {},
    "devtools.size_analysis_tool": {},
    "devtools.visualization": dict(_EXPLORER),
    "devtools.visualization.visualization_utils": {
        **_EXPLORER,
        "visualize_with_clusters": f"{_DEVTOOLS}.visualization",
    },
    "devtools.debug_format.base_schema": dict(_BASE_GRAPH),
    "devtools.debug_format.et_schema": {
        **_BASE_GRAPH,
        "FXOperatorGraph": _GRAPHS,
        "RESERVED_METADATA_ARG": f"{_GRAPHS}:MetadataKey",
    },
    "devtools.inspector._inspector": {
        **_INSPECTOR_TOOLS,
        **dict.fromkeys(
            (
                "DebugEventSignature",
                "EventSignature",
                "InstructionEvent",
                "InstructionEventSignature",
                "ProfileEventSignature",
                "is_debug_output",
            ),
            f"{_DEVTOOLS}.event_signatures",
        ),
        **dict.fromkeys(("Event", "EventBlock", "PerfData"), _INSPECT),
        "Inspector": f"{_DEVTOOLS}.inspector",
        "DelegateMetadata": "rushlight.record.maps",
        "ETRecord": _RECORD,
        "IntermediateOutputCapturer": f"{_DEVTOOLS}.capturer",
        "flatcc": "executorch.devtools.etdump:schema_flatcc",
        "parse_etrecord": _RECORD,
    },
    "devtools.inspector._inspector_utils": _INSPECTOR_TOOLS,
    "devtools.inspector._intermediate_output_capturer": {
        "IntermediateOutputCapturer": f"{_DEVTOOLS}.capturer"
    },
    "devtools.pte_tool.diff_pte": dict.fromkeys(
        (
            "EValueDiff",
            "ElementDiff",
            "ExecutionPlanDiff",
            "FieldDiff",
            "NamedDataDiff",
            "OperatorUsage",
            "PTEDiffResult",
            "TensorDataDiff",
            "TensorInfo",
            "diff_pte",
            "format_diff_result",
        ),
        f"{_DEVTOOLS}.pte_diff",
    ),
    "devtools.etrecord": {
        "ETRecord": _RECORD,
        "generate_etrecord": _RECORD,
        "parse_etrecord": _RECORD,
    },
    "devtools.etrecord._etrecord": {
        "ETRecord": _RECORD,
        "ETRecordReservedFileNames": "rushlight.schema.etrecord:Entry",
        "_get_reference_outputs": f"{_RECORD}:outputs_of",
        "_get_representative_inputs": f"{_RECORD}:inputs_of",
        "generate_etrecord": _RECORD,
        "parse_etrecord": _RECORD,
    },
    "devtools.inspector": {
        "Event": _INSPECT,
        "EventBlock": _INSPECT,
        "Inspector": f"{_DEVTOOLS}.inspector",
        "PerfData": _INSPECT,
        "TimeScale": _INSPECT,
        "compare_results": f"{_DEVTOOLS}.inspector",
        **{name: _VGF for name in _STATISTICS if name.startswith("parse")},
    },
    "devtools.inspector.vgf_neural_statistics": dict.fromkeys(_STATISTICS, _VGF),
    "devtools.intermediate_output_tap": {
        **_TAP,
        **_RULES,
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
        **dict.fromkeys(
            (
                "BUNDLED_PROGRAM_SCHEMA_NAME",
                "SCALAR_TYPE_SCHEMA_NAME",
                "convert_from_flatbuffer",
                "convert_to_flatbuffer",
                "deserialize_from_json_to_bundled_program",
                "serialize_from_bundled_program_to_json",
                "write_schema",
            ),
            _SCHEMAS,
        ),
    },
    **{
        f"{_GENERATED}.bundled_program_flatbuffer.{table}": _table_module(table, *fields)
        for table, fields in _FIELDS.items()
    },
    f"{_GENERATED}.bundled_program_flatbuffer.ValueUnion": {
        name: f"{_TABLE_MODULES}:ValueUnion.{name}" for name in ("ValueUnion", "ValueUnionCreator")
    },
    f"{_GENERATED}.executorch_flatbuffer.ScalarType": {"ScalarType": _TABLE_MODULES},
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
        **dict.fromkeys(("ContainerMetadata", "Null", "String"), f"{_DEVTOOLS}.traces"),
        "ETDumpFlatCC": f"{_ETDUMP}:ETDump",
        "PROFILE_EVENT_ENUM": f"{_DEVTOOLS}.traces:EventName",
        "ScalarType": "rushlight.schema.common",
    },
    "devtools.etdump.serialize": {
        "ETDUMP_FLATCC_SCHEMA_NAME": _SCHEMAS,
        "SCALAR_TYPE_SCHEMA_NAME": _SCHEMAS,
        "_write_schema": f"{_SCHEMAS}:write_schema",
        "deserialize_from_etdump_flatcc": f"{_DEVTOOLS}.traces",
        "serialize_to_etdump_flatcc": f"{_DEVTOOLS}.traces",
    },
    "devtools.inspector.numerical_comparator": {
        **_COMPARATORS,
        "DebugHandle": _VALUES,
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
    "devtools.intermediate_output_tap.custom_ops_lib": {
        "tap_tensor_impl": "rushlight.ir.custom_ops.tap:tap"
    },
    "devtools.intermediate_output_tap._selectors": dict(_TAP),
    "devtools.intermediate_output_tap._reducers": {
        **{name: _TAP[name] for name in ("FULL_TENSOR", "STATS", "get_reducer")},
        "StatReducer": _RULES["StatReducer"],
    },
    "devtools.intermediate_output_tap._spec": {"TapSpec": _RULES["TapSpec"]},
    "devtools.intermediate_output_tap._strip_pass": {"strip_taps_": _RULES["strip_taps_"]},
    "devtools.intermediate_output_tap._tap_pass": {
        name: _RULES[name]
        for name in ("TapRule", "find_tap_nodes", "is_tap_node", "tap_intermediate_outputs_")
    },
}

WHOLE: dict[str, str] = {
    "devtools.inspector.inspector_cli": f"{_DEVTOOLS}.inspector_cli",
    "devtools.scripts.generate_profiling_csv": f"{_DEVTOOLS}.profiling_csv",
    "devtools.size_analysis_tool.size_analysis_tool": f"{_DEVTOOLS}.size_information",
}

ABSENT: dict[str, str] = {
    "devtools.bundled_program.serialize": "the file's tables are read and written by "
    "serialize_from_bundled_program_to_flatbuffer and its counterpart deserialize_from_flatbuffer…",
    "devtools.bundled_program.serialize.generate_bundled_program": "the modules in "
    "serialize.generated are made of the schema's tables when they are imported; "
    "serialize.write_schema writes the schema for flatc",
    "devtools.debug_format": "a graph as plain data has nodes and graphs of nodes alone: "
    "devtools.debug_format.base_schema",
    "devtools.pte_tool.diff_pte.main": "use `rushlight diff`",
}
