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
    "SpecPropPass": "rushlight.exir.graph_passes.spec_prop",
    "ToOutVarPass": "rushlight.exir.graph_passes.out_variants",
    "remove_unused_parameters_pass": "rushlight.exir.passes",
}
_CONFIGS = {
    "EdgeCompileConfig": "rushlight.edge",
    "ExecutorchBackendConfig": "rushlight.exir.config",
}
_SHAPES = {
    "ConstraintBasedSymShapeEvalPass": "rushlight.exir.graph_passes.shapes",
    "HintBasedSymShapeEvalPass": "rushlight.exir.graph_passes.shapes",
}
_CAPTURE = dict.fromkeys(("CallSpec", "CaptureConfig", "capture"), "rushlight.exir.older.capture")
_OLDER = {
    "ExecutorchProgram": "rushlight.exir.manager:ExecutorchProgramManager",
    "ExirExportedProgram": "rushlight.exir.older.capture",
    "edge_to_executorch_passes": "rushlight.exir.graph_passes.lists",
}
_COMMON = "rushlight.exir.older.common"
_SCHEMA = "rushlight.schema.program"
_PROGRAM_FILES = "rushlight.exir.program_files"
_EMITTED = dict.fromkeys(("EmitterOutput", "emit_program"), "rushlight.exir.emitted")

_GRAPH_PASSES = "rushlight.exir.graph_passes"
_SERDE = "rushlight.record.exir_files"
# Of the schema of exported programs, which torch has in a later version.
_TABLES = (
    "Argument BufferMutationSpec ConstantValue CustomObjArgument Device ExportedProgram "
    "GradientToParameterSpec GradientToUserInputSpec Graph GraphArgument GraphModule "
    "GraphSignature InputSpec InputToBufferSpec InputToCustomObjSpec InputToParameterSpec "
    "InputToTensorConstantSpec InputTokenSpec Layout LossOutputSpec MemoryFormat ModuleCallEntry "
    "ModuleCallSignature NamedArgument Node OptionalTensorArgument OutputSpec OutputTokenSpec "
    "RangeConstraint ScalarType SchemaVersion SymBool SymBoolArgument SymExpr SymExprHint SymInt "
    "SymIntArgument TREESPEC_VERSION TensorArgument TensorMeta TokenArgument "
    "UserInputMutationSpec UserInputSpec UserOutputSpec"
).split()


def _pass_names(module: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, f"{_GRAPH_PASSES}.{module}")


MODULES: dict[str, dict[str, str]] = {
    "exir": {
        **_LOWERING,
        **_CONFIGS,
        **_CAPTURE,
        **_OLDER,
        **_EMITTED,
        "ExportedProgram": "torch.export",
        "ExportGraphSignature": "torch.export.graph_signature",
        "Value": "typing:Any",
        "load": _SERDE,
        "save": _SERDE,
    },
    "exir.capture": {**_CONFIGS, **_CAPTURE},
    "exir.capture._config": {**_CONFIGS, "CaptureConfig": _CAPTURE["CaptureConfig"]},
    "exir.program": {
        **_LOWERING,
        **_OLDER,
        "get_fake_program": "rushlight.exir.fake_programs",
    },
    "exir.program._fake_program": dict.fromkeys(
        ("get_fake_program", "update_to_real_program"), "rushlight.exir.fake_programs"
    ),
    "exir.program._program": {
        **_LOWERING,
        **_OLDER,
        "_transform": "rushlight.exir.transform:transform",
        "lift_constant_tensor_pass": "rushlight.exir.graph_passes.program_passes",
    },
    "exir.common": {
        **dict.fromkeys(
            ("extract_out_arguments", "get_schema_for_operators"), "rushlight.exir.operators"
        ),
        **dict.fromkeys(
            (
                "format_schema_name",
                "no_dispatch",
                "override_logger",
                "setting_python_recursive_limit",
            ),
            _COMMON,
        ),
    },
    "exir.version": {"EXECUTORCH_SCHEMA_VERSION": _COMMON},
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
    "exir.print_program": dict.fromkeys(
        (
            "add_cursor_to_graph",
            "inspect_node",
            "pretty_print",
            "pretty_print_stacktraces",
            "print_program",
        ),
        "rushlight.exir.print_program",
    ),
    "exir.passes.sym_shape_eval_pass": {
        **_SHAPES,
        **_pass_names(
            "upper_bounds",
            "index_Tensor",
            "nonzero",
            "register_upper_bound_inference",
            "upper_bound_shape_inference_table",
        ),
    },
    "exir.types": dict.fromkeys(
        ("LeafValueSpec", "ScalarSpec", "ValueSpec"), "rushlight.exir.specs"
    ),
    "exir.delegate": {"executorch_call_delegate": "rushlight.partition"},
    "exir.error": {
        "ExportErrorType": "rushlight.exir.kinds",
        "ExportError": "rushlight.errors",
        "internal_assert": _COMMON,
        "InternalError": "rushlight.errors:ExportError",
    },
    "exir.graph_module": {
        "LeafValue": "typing:Any",
        "_get_submodule": "rushlight.exir.submodules:submodule_of",
        "get_control_flow_submodules": "rushlight.partition",
        **dict.fromkeys(
            ("bfs_trace_with_node_process", "get_cond_while_submodules", "get_scan_submodules"),
            "rushlight.exir.submodules",
        ),
    },
    "exir.lowered_backend_module": {
        "LoweredBackendModule": "rushlight.partition",
        "executorch_call_delegate": "rushlight.partition",
        "arrange_graph_outputs": "rushlight.exir.submodules",
        "get_lowered_backend_modules": "rushlight.exir.passes",
        "arrange_graph_placeholders": "rushlight.exir.backend.submodule_programs",
        "create_exported_program_from_submodule": "rushlight.exir.backend.submodule_programs",
        "create_submodule_from_nodes": "rushlight.exir.graph_passes.submodules",
        "get_lowered_submodules": "rushlight.partition",
    },
    "exir.memory": {
        **dict.fromkeys(("AllocSpec", "alloc", "free", "view"), "rushlight.ir.alloc"),
        "TensorAllocSpec": "rushlight.ir.alloc:AllocSpec",
    },
    "exir.pass_base": {
        **dict.fromkeys(
            (
                "ArgSchema",
                "Argument",
                "NodeMetadata",
                "NodeMetadataValue",
                "PROTECTED_KEYS",
                "PassType",
                "ProxyValue",
                "Value",
                "map_args",
            ),
            "rushlight.edge.export_pass",
        ),
        **dict.fromkeys(
            ("ExportedProgramPassBase", "ExportedProgramPassResult"), "rushlight.edge.pass_manager"
        ),
        "ExportPass": "rushlight.edge",
        "ExportPassBaseError": "rushlight.errors:ExportError",
        "PassResult": "rushlight.edge",
    },
    "exir.pass_manager": {
        "ExportedProgramPassManager": "rushlight.edge.pass_manager",
        "PassManager": "rushlight.edge",
        "PassType": "rushlight.edge.export_pass",
    },
    "exir.emit": dict(_EMITTED),
    "exir.emit._emit_program": dict(_EMITTED),
    "exir._serialize": {
        "_PTEFile": f"{_PROGRAM_FILES}:PTEFile",
        "_deserialize_pte_binary": f"{_PROGRAM_FILES}:deserialize_pte_binary",
        "_serialize_pte_binary": f"{_PROGRAM_FILES}:serialize_pte_binary",
    },
    "exir._serialize._dataclass": {
        "_DataclassEncoder": "rushlight.schema.json_text:DataclassEncoder",
        "_json_to_dataclass": "rushlight.schema.json_text:json_to_dataclass",
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
    "exir.serde.serialize": dict.fromkeys(
        (
            "ExportedProgramDeserializer",
            "ExportedProgramSerializer",
            "deserialize",
            "load",
            "save",
            "serialize",
        ),
        _SERDE,
    ),
    "exir.serde.export_serialize": {
        **dict.fromkeys(
            (
                "EnumEncoder",
                "Final",
                "GraphModuleDeserializer",
                "GraphModuleSerializer",
                "GraphState",
                "MetaType",
                "ST_DELIMITER",
                "SerializedArtifact",
                "canonicalize",
                "deserialize_device",
                "deserialize_torch_artifact",
                "serialize_range_constraints",
                "serialize_sym_bool",
                "serialize_sym_int",
                "serialize_tensor_meta",
                "serialize_torch_artifact",
            ),
            "torch._export.serde.serialize",
        ),
        **dict.fromkeys(
            (
                "ExportedProgramDeserializer",
                "ExportedProgramSerializer",
                "deserialize",
                "serialize",
            ),
            _SERDE,
        ),
        "SerializeError": "rushlight.errors:Error",
    },
    "exir.serde.schema": {
        **dict.fromkeys(_TABLES, "torch._export.serde.schema"),
        "CompileSpec": "rushlight.record.exir_lowered:CompileSpecTable",
        "ConstantInputSpec": "torch._export.serde.schema:InputToConstantInputSpec",
        "LoweredBackendModule": "rushlight.record.exir_lowered:LoweredTable",
        "SCHEMA_VERSION": _SERDE,
    },
    "exir.serde.schema_check": dict.fromkeys(
        ("SchemaUpdateError", "check", "update_schema"), "torch._export.serde.schema_check"
    ),
    "exir.tracer": {
        **dict.fromkeys(
            ("dispatch_trace", "flatten_output", "flattened_dispatch_trace"),
            "rushlight.exir.older.tracing",
        ),
        "Value": "typing:Any",
        "_default_decomposition_table": "rushlight.edge.decompositions:decomposition_table",
    },
    "exir.tensor_layout": {"TensorLayout": "rushlight.schema.flat_tensor"},
    "exir._serialize.padding": dict.fromkeys(
        ("aligned_size", "pad_to", "padding_required"), "rushlight.exir.cord"
    ),
    "exir._warnings": dict.fromkeys(
        ("ExperimentalWarning", "deprecated", "experimental"), "rushlight.exir.api_warnings"
    ),
    "exir.passes.constant_prop_pass": {
        "constant_prop_pass": "rushlight.exir.passes",
        "get_default_skip_targets_no_quant": "rushlight.exir.passes",
        **_pass_names(
            "constant_values",
            "get_constant_placeholder_dict",
            "get_data",
            "get_fake_mode",
            "get_first_user_input",
            "get_propagated_const_tensor_dict",
            "is_const",
            "is_constant_buffer",
        ),
    },
    "exir.passes.const_prop_pass": {
        "ConstPropPass": "rushlight.exir.passes",
        "quantized_decomposed_lib": "torch.ao.quantization.fx._decomposed",
    },
    "exir.passes.quant_fusion_pass": {
        **_pass_names("quant_fusion", "QuantFusionPass", "quant_fusion_and_const_prop_pass"),
        "_get_node_value_dict": f"{_GRAPH_PASSES}.quant_fusion:values_of_inputs",
    },
    "exir.passes.executorch_prim_ops_registry": {
        **{
            name: f"operator:{name}"
            for name in (
                *("add", "eq", "floordiv", "ge", "gt", "le", "lt", "mod", "mul", "neg", "sub"),
                "truediv",
            )
        },
        **{
            name: f"torch:{name}"
            for name in (*("sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not"),)
        },
        "builtin_round": "builtins:round",
        "ceil": "math:ceil",
        "trunc": "math:trunc",
        **_pass_names("backend_numbers", "executorch_prims_lib", "is_sym_op"),
    },
    "exir.passes.dim_order_ops_registry": _pass_names(
        "layouts", "DimOrderOpsMap", "MemoryFormatOpsMap"
    ),
    "exir.passes.spec_prop_pass": dict.fromkeys(
        ("SpecPropPass", "make_spec"), "rushlight.exir.graph_passes.spec_prop"
    ),
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
    "exir.verification.dev_html": dict.fromkeys(
        ("gen_html", "get_header", "iterable_to_html"), "rushlight.exir.older.program_page"
    ),
    "exir.verification.interpreter": dict.fromkeys(
        (
            "Interpreter",
            "ValueListType",
            "ValueScalarType",
            "ValueType",
            "comp_types",
            "make_operators_list",
            "resolve_op",
        ),
        "rushlight.exir.interpreter",
    ),
    "exir.verification.verifier": dict.fromkeys(
        (
            "ALLOWED_META_KEYS",
            "EXIRATenDialectVerifier",
            "EXIRATenDialectVerifierBase",
            "EXIREdgeDialectVerifier",
            "get_aten_verifier",
        ),
        "rushlight.exir.verifier",
    ),
    "exir.graph": {"ExportGraph": "rushlight.exir.older.export_graph"},
    "exir.passes": {
        **_SHAPES,
        **_PASSES,
        "Argument": "rushlight.edge.export_pass",
        "ExportPass": "rushlight.edge",
        "ExportedProgramPassManager": "rushlight.edge.pass_manager",
        "MemoryPlanningPass": "rushlight.exir.planning.memory_pass",
        "PassType": "rushlight.edge.export_pass",
        **_pass_names("quant_fusion", "QuantFusionPass"),
        "control_flow": "executorch.exir:control_flow",
        "memory": "executorch.exir:memory",
        "memory_planning": "executorch.exir:memory_planning",
        "override_logger": _COMMON,
        **_pass_names("out_variants", "make_alloc_node", "to_out_var_skiplist"),
        **_pass_names(
            "removals",
            "PruneEmptyTensorsPass",
            "RemoveNoopPass",
            "RemoveToCopyPass",
            "dead_code_elimination_pass",
        ),
        **_pass_names(
            "respelling",
            "NormalizeTransposePass",
            "OpReplacePass",
            "ReplaceBrokenOpsWithFunctionalOpsPass",
            "ReplaceSymSizeOpPass",
        ),
        **_pass_names("numbers_to_tensors", "ScalarToTensorPass", "SymToTensorPass"),
        **_pass_names("layouts", "LegalizePortableDimOrderPass", "MemoryFormatOpsPass"),
        **_pass_names("handles", "DebugHandleGeneratorPass", "DebugPass"),
        **_pass_names("lists", "base_post_op_replace_passes", "base_pre_op_replace_passes"),
        "DynamicMemoryPlanningMode": "rushlight.exir.graph_passes.shapes",
        "EdgeToBackendOpsPass": f"{_GRAPH_PASSES}.backend_numbers",
        "eval_shape_upper_bound": "rushlight.exir.symbols",
        "executorch_call_delegate": "rushlight.partition",
        "BackendOpOverload": "rushlight.edge.operators",
        "EdgeOpOverload": "rushlight.edge.operators",
        "InternalError": "rushlight.errors:ExportError",
        "get_out_args_from_opoverload": "rushlight.exir.operators:out_names",
        "is_out_variant": "rushlight.exir.operators",
        "to_out_variant": "rushlight.exir.operators",
        **_pass_names(
            "program_passes",
            "ToDevicePass",
            "insert_write_back_for_buffers_pass",
            "weights_to_outputs_pass",
        ),
        "propagate_dynamic_shape": "rushlight.exir.graph_passes.shapes",
    },
    "exir.dynamic_shape": {"DynamicMemoryPlanningMode": "rushlight.exir.graph_passes.shapes"},
    "exir.passes.convert_constant_dim_order_pass": _pass_names(
        "layouts", "convert_constant_dim_order_pass"
    ),
    "exir.passes.cse_pass": _pass_names("removals", "CSEPass"),
    "exir.passes.debug_handle_generator_pass": _pass_names(
        "handles", "DebugHandleGeneratorPass", "generate_missing_debug_handles"
    ),
    "exir.passes.external_constants_pass": {
        **_pass_names(
            "program_passes",
            "delegate_external_constants_pass_unlifted",
            "external_constants_pass",
            "external_mutable_weights_pass",
        ),
        "is_param_node": "rushlight.exir.backend.nodes:is_constant_data",
    },
    "exir.passes.init_mutable_pass": _pass_names("program_passes", "InitializedMutableBufferPass"),
    "exir.passes.insert_write_back_for_buffers_pass": _pass_names(
        "program_passes", "insert_write_back_for_buffers_pass"
    ),
    "exir.passes.legalize_portable_dim_order_pass": _pass_names(
        "layouts", "LegalizePortableDimOrderPass"
    ),
    "exir.passes.memory_format_ops_pass": _pass_names(
        "layouts", "DimOrderOpsRevertPass", "MemoryFormatOpsPass"
    ),
    "exir.passes.normalize_transpose_pass": _pass_names("respelling", "NormalizeTransposePass"),
    "exir.passes.normalize_view_copy_base_pass": _pass_names("views", "NormalizeViewCopyBasePass"),
    "exir.passes.pass_registry": _pass_names("program_passes", "PassRegistry"),
    "exir.passes.prune_empty_tensors_pass": _pass_names("removals", "PruneEmptyTensorsPass"),
    "exir.passes.reinplace": _pass_names("reinplace", "DEFAULT_INPLACEABLE_OPS", "reinplace_pass"),
    "exir.passes.remove_graph_asserts_pass": _pass_names(
        "removals", "RemoveGraphAssertsPass", "RemoveNonCoreAtenOpGraphAssertsPass"
    ),
    "exir.passes.remove_mixed_type_operators": _pass_names(
        "numbers_to_tensors", "RemoveMixedTypeOperators"
    ),
    "exir.passes.remove_noop_pass": _pass_names(
        "removals", "RemoveNoopPass", "RemoveToCopyPass", "eliminate_dq_q"
    ),
    "exir.passes.remove_unused_parameters_pass": {
        "remove_unused_parameters_pass": "rushlight.exir.passes"
    },
    "exir.passes.replace_aten_with_edge_pass": _pass_names(
        "respelling", "DISALLOW_LIST", "OpReplacePass", "aten_to_edge", "should_lower_to_edge"
    ),
    "exir.passes.replace_broken_ops_with_function_ops_pass": _pass_names(
        "respelling", "ReplaceBrokenOpsWithFunctionalOpsPass"
    ),
    "exir.passes.replace_edge_with_backend_pass": _pass_names(
        "backend_numbers", "EdgeToBackendOpsPass"
    ),
    "exir.passes.replace_sym_size_op_pass": _pass_names(
        "respelling", "ReplaceSymSizeOpPass", "replacements"
    ),
    "exir.passes.replace_view_copy_with_view_pass": _pass_names(
        "views", "ReplaceViewCopyWithViewPass"
    ),
    "exir.passes.scalar_to_tensor_pass": _pass_names("numbers_to_tensors", "ScalarToTensorPass"),
    "exir.passes.sym_to_tensor_pass": _pass_names("numbers_to_tensors", "SymToTensorPass"),
    "exir.passes.to_device_pass": _pass_names("program_passes", "ToDevicePass"),
    "exir.passes.weights_to_outputs_pass": _pass_names("program_passes", "weights_to_outputs_pass"),
    "exir.passes.memory_planning_pass": {
        "MemoryPlanningPass": "rushlight.exir.planning.memory_pass"
    },
    "exir.memory_planning": {
        **dict.fromkeys(
            (
                "collect_specs_from_nodes",
                "filter_nodes",
                "get_cond_nodes",
                "get_graph_input_tensors",
                "get_graph_output_tensors",
                "get_input_specs",
                "get_map_nodes",
                "get_node_tensor_specs",
                "get_return_specs",
                "get_scan_nodes",
                "get_while_nodes",
                "insert_calls_to_free",
                "update_all_tensors_lifetime",
                "update_tensor_lifetime",
            ),
            "rushlight.exir.planning.nodes",
        ),
        **dict.fromkeys(
            (
                "AllocationSpec",
                "MemoryAlgoResult",
                "MemoryPlanningAlgorithmSuite",
                "REGISTERED_ALGOS",
                "SharedObject",
                "SpecAllocResult",
                "greedy",
                "materialize_buffer",
                "naive",
                "pick_shared_obj",
            ),
            "rushlight.exir.planning.algorithms",
        ),
        "Verifier": "rushlight.exir.planning.verify_plan",
        "apply_algo": "rushlight.exir.planning.apply",
        "_do_user_inputs_exist": "rushlight.exir.planning.nodes:do_user_inputs_exist",
        "_is_inplace_node": "rushlight.exir.planning.nodes:is_inplace_node",
        "_is_mutable_buffer": "rushlight.exir.planning.nodes:is_mutable_buffer",
        "_is_out_var_node": "rushlight.exir.planning.nodes:is_out_var_node",
    },
    "exir.sym_util": dict.fromkeys(
        (
            "collect_free_symbols",
            "eval_expr",
            "eval_shape",
            "eval_shape_upper_bound",
            "eval_upper_bound",
        ),
        "rushlight.exir.symbols",
    ),
    "exir.capture._capture": {"patch_forward": "rushlight.exir.graph_passes.forwards"},
    "exir.scalar_type": {"ScalarType": _SCHEMA},
    "exir.tensor": {
        **dict.fromkeys(
            (
                "ALIGNMENT",
                "TensorSpec",
                "calculate_aligned_num_bytes",
                "check_spec",
                "determine_tensor_dynanism",
            ),
            "rushlight.exir.specs",
        ),
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
            (
                "enum_to_scalar_map",
                "get_scalar_type",
                "layout_enum",
                "make_allocation_info",
                "make_tensor_value",
                "memory_format_enum",
                "scalar_type_enum",
            ),
            "rushlight.exir.tensors",
        ),
        "AddressSpaceOverflowException": "rushlight.errors:ExportError",
        "scalar_type_table": "rushlight.ir.spec:SCALAR_TYPES",
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
            "DeviceType",
            "NonConstBufferDevice",
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

_DYNAMO = "torch.export.export(strict=True) captures by TorchDynamo, strict=False without it"
_CAPTURED = "torch.export.export(model, inputs, strict=…) captures the model"
_PROXIES = "torch.fx.experimental.proxy_tensor.make_fx traces the calls of a function of tensors"

ABSENT: dict[str, str] = {
    "exir.tracer": _PROXIES,
    **{
        f"exir.tracer.{name}": _DYNAMO
        for name in (
            "ExirDynamoConfig",
            "TORCHDYNAMO_ENABLED",
            "torchdynamo_enabled",
            "using_dynamo",
        )
    },
    "exir.tracer.dynamo_trace": _CAPTURED,
    "exir.tracer.get_stacktrace": "captured nodes have theirs in node.meta['stack_trace']",
}
