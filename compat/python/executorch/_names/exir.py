"""`executorch.exir` without `exir.backend`: lowering, passes, the schema of programs."""

from __future__ import annotations

_LOWERING = {
    "EdgeProgramManager": "rushlight.exir.manager",
    "ExecutorchProgramManager": "rushlight.exir.manager",
    "to_edge": "rushlight.exir.manager",
    "to_edge_transform_and_lower": "rushlight.exir.manager",
}
_PASSES = {
    "ConstPropPass": "rushlight.exir.passes",
    "SpecPropPass": "rushlight.exir.passes",
    "remove_unused_parameters_pass": "rushlight.exir.passes",
}
_CONFIGS = {
    "EdgeCompileConfig": "rushlight.edge",
    "ExecutorchBackendConfig": "rushlight.exir.config",
}
_SHAPES = {
    "ConstraintBasedSymShapeEvalPass": "rushlight.exir.config",
    "HintBasedSymShapeEvalPass": "rushlight.exir.config",
}
_SCHEMA = "rushlight.schema.program"
_PROGRAM_FILES = "rushlight.exir.program_files"
_EMITTED = dict.fromkeys(("EmitterOutput", "emit_program"), "rushlight.exir.emitted")

MODULES: dict[str, dict[str, str]] = {
    "exir": {
        **_LOWERING,
        **_CONFIGS,
        **_EMITTED,
        "ExportedProgram": "torch.export",
        "ExportGraphSignature": "torch.export.graph_signature",
        "Value": "typing:Any",
        "load": "torch.export",
        "save": "torch.export",
    },
    "exir.capture": dict(_CONFIGS),
    "exir.capture._config": dict(_CONFIGS),
    "exir.program": {**_LOWERING, "get_fake_program": "rushlight.exir.fake_programs"},
    "exir.program._fake_program": dict.fromkeys(
        ("get_fake_program", "update_to_real_program"), "rushlight.exir.fake_programs"
    ),
    "exir.program._program": {
        **_LOWERING,
        "_transform": "rushlight.exir.transform:transform",
    },
    "exir.common": dict.fromkeys(
        ("extract_out_arguments", "get_schema_for_operators"), "rushlight.exir.operators"
    ),
    "exir.debug_handle_utils": dict.fromkeys(
        (
            "DEBUG_HANDLE_KEY",
            "FROM_NODE_KEY",
            "UNSET_DEBUG_HANDLE",
            "get_greatest_ancestor_node_identifier",
        ),
        "rushlight.record.handles",
    ),
    "exir.dim_order_utils": dict.fromkeys(
        (
            "get_dim_order",
            "get_memory_format",
            "is_channel_last_dim_order",
            "is_contiguous_dim_order",
        ),
        "rushlight.exir.dim_orders",
    ),
    "exir.operator.convert": {
        **dict.fromkeys(
            ("is_inplace_variant", "is_out_variant", "to_out_variant", "unwrap_op_overload"),
            "rushlight.exir.operators",
        ),
        "get_out_args_from_opoverload": "rushlight.exir.operators:out_names",
    },
    "exir.print_program": dict.fromkeys(
        ("add_cursor_to_graph", "inspect_node", "pretty_print", "print_program"),
        "rushlight.exir.print_program",
    ),
    "exir.passes.sym_shape_eval_pass": dict(_SHAPES),
    "exir.dialects._ops": {
        "bind_pattern_to_op": "rushlight.exir.operators",
        "ops": "rushlight.edge.operators",
    },
    "exir.dialects.backend._ops": {"BackendOpOverload": "rushlight.edge.operators"},
    "exir.dialects.edge._ops": {
        "EdgeOpOverload": "rushlight.edge.operators",
        "EdgeOpOverloadPacket": "rushlight.edge.operators",
    },
    "exir.delegate": {"executorch_call_delegate": "rushlight.partition"},
    "exir.error": {
        "ExportErrorType": "rushlight.exir.kinds",
        "ExportError": "rushlight.errors",
        "InternalError": "rushlight.errors:ExportError",
    },
    "exir.graph_module": {
        "_get_submodule": "rushlight.exir.submodules:submodule_of",
        "get_control_flow_submodules": "rushlight.partition",
    },
    "exir.lowered_backend_module": {
        "LoweredBackendModule": "rushlight.partition",
        "arrange_graph_outputs": "rushlight.exir.submodules",
        "get_lowered_backend_modules": "rushlight.exir.passes",
        "get_lowered_submodules": "rushlight.partition",
    },
    "exir.memory": {
        **dict.fromkeys(("AllocSpec", "alloc", "free", "view"), "rushlight.ir.alloc"),
        "TensorAllocSpec": "rushlight.ir.alloc:AllocSpec",
    },
    "exir.pass_base": {
        "ExportPass": "rushlight.edge",
        "NodeMetadata": "rushlight.edge.export_pass",
        "PassResult": "rushlight.edge",
        "ProxyValue": "rushlight.edge.export_pass",
    },
    "exir.pass_manager": {"PassManager": "rushlight.edge"},
    "exir.emit": dict(_EMITTED),
    "exir.emit._emit_program": dict(_EMITTED),
    "exir._serialize": {
        "_PTEFile": f"{_PROGRAM_FILES}:PTEFile",
        "_deserialize_pte_binary": f"{_PROGRAM_FILES}:deserialize_pte_binary",
        "_serialize_pte_binary": f"{_PROGRAM_FILES}:serialize_pte_binary",
    },
    "exir._serialize._dataclass": {
        "_DataclassEncoder": "rushlight.exir.json_text:DataclassEncoder",
        "_json_to_dataclass": "rushlight.exir.json_text:json_to_dataclass",
    },
    "exir._serialize._flatbuffer_program": {
        "_flatbuffer_to_program": f"{_PROGRAM_FILES}:flatbuffer_to_program",
        "_program_to_flatbuffer": f"{_PROGRAM_FILES}:program_to_flatbuffer",
    },
    "exir._serialize._program": {
        **dict.fromkeys(
            ("PTEFile", "deserialize_pte_binary", "serialize_pte_binary"), _PROGRAM_FILES
        ),
        "_ExtendedHeader": f"{_PROGRAM_FILES}:ExtendedHeader",
        "_get_extended_header": f"{_PROGRAM_FILES}:extended_header",
        "_program_to_json": f"{_PROGRAM_FILES}:program_to_json",
    },
    "exir._serialize._serialize": {"serialize_for_executorch": _PROGRAM_FILES},
    "exir._serialize._cord": {"Cord": "rushlight.exir.cord"},
    "exir._serialize.data_serializer": {
        **dict.fromkeys(("DataPayload", "DataSerializer"), "rushlight.exir.data_files"),
        "DataEntry": "rushlight.partition.named_data",
    },
    "exir.control_flow": {"while_loop": "torch._higher_order_ops.while_loop"},
    "exir.serde.serialize": {"load": "torch.export", "save": "torch.export"},
    "exir.tensor_layout": {"TensorLayout": "rushlight.schema.flat_tensor"},
    "exir._serialize.padding": dict.fromkeys(
        ("aligned_size", "pad_to", "padding_required"), "rushlight.exir.cord"
    ),
    "exir._warnings": dict.fromkeys(
        ("ExperimentalWarning", "deprecated", "experimental"), "rushlight.exir.api_warnings"
    ),
    "exir.passes.constant_prop_pass": {"constant_prop_pass": "rushlight.exir.passes"},
    "exir.passes.const_prop_pass": {"ConstPropPass": "rushlight.exir.passes"},
    "exir.passes.spec_prop_pass": {"SpecPropPass": "rushlight.exir.passes"},
    "exir.passes.quantize_io_pass": dict.fromkeys(
        (
            "QuantizeInputs",
            "QuantizeOutputs",
            "extract_io_quant_params",
            "get_config_method_name",
            "quantize_input",
            "quantize_output",
        ),
        "rushlight.exir.quantized_io",
    ),
    "exir.verification.interpreter": {"Interpreter": "rushlight.exir.interpreter"},
    "exir.verification.verifier": {"EXIREdgeDialectVerifier": "rushlight.exir.verifier"},
    "exir.passes": {
        **_SHAPES,
        **_PASSES,
        "ExportPass": "rushlight.edge",
        "MemoryPlanningPass": "rushlight.edge",
    },
    "exir.passes.memory_planning_pass": {"MemoryPlanningPass": "rushlight.edge"},
    "exir.scalar_type": {"ScalarType": _SCHEMA},
    "exir.tensor": {
        "TensorSpec": "rushlight.ir.spec",
        **dict.fromkeys(
            (
                "contiguous_stride_from_shape",
                "dim_order_from_stride",
                "num_bytes_from_shape_and_dtype",
                "stride_from_dim_order",
            ),
            "rushlight.exir.dim_orders",
        ),
        **dict.fromkeys(
            ("get_scalar_type", "make_allocation_info", "make_tensor_value", "scalar_type_enum"),
            "rushlight.exir.tensors",
        ),
    },
    "exir.schema": dict.fromkeys(
        (
            "AllocationDetails",
            "BackendDelegate",
            "BackendDelegateDataReference",
            "BackendDelegateInlineData",
            "Bool",
            "BoolList",
            "Buffer",
            "Chain",
            "CompileSpec",
            "ContainerMetadata",
            "DataLocation",
            "DataSegment",
            "DelegateCall",
            "DeviceType",
            "Double",
            "DoubleList",
            "EValue",
            "ExecutionPlan",
            "ExtraTensorInfo",
            "FreeCall",
            "Frame",
            "FrameList",
            "Instruction",
            "Int",
            "IntList",
            "JumpFalseCall",
            "KernelCall",
            "InstructionArguments",
            "KernelTypes",
            "MoveCall",
            "NamedData",
            "NonConstBufferDevice",
            "Null",
            "Operator",
            "OptionalTensorList",
            "Program",
            "ScalarType",
            "String",
            "SubsegmentOffsets",
            "Tensor",
            "TensorDataLocation",
            "TensorList",
            "TensorShapeDynamism",
        ),
        _SCHEMA,
    ),
}

ABSENT: dict[str, str] = {
    "exir.capture.capture": "use torch.export.export, and give its result to to_edge",
    "exir.tracer": "torch.export.export traces models",
}
