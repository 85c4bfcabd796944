"""`executorch.exir.backend`: partitioners and backends."""

from __future__ import annotations

_PARTITION = "rushlight.partition"
_NODES = "rushlight.exir.backend.nodes"
_DUPLICATE = "rushlight.exir.backend.duplicate_dequantize"
_SUBMODULES = "rushlight.exir.backend.lower_submodules"
_CANONICAL = "exir.backend.canonical_partitioners"


def _same(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, _PARTITION)


MODULES: dict[str, dict[str, str]] = {
    "exir.backend.backend_api": {
        **_same(
            "CompileSpec",
            "LoweredBackendModule",
            "MethodProgramsPartitionerSpec",
            "disable_validation",
            "to_backend",
            "validation_disabled",
        ),
        "lower_all_submodules_to_backend": _SUBMODULES,
        "remove_used_metadata": _SUBMODULES,
    },
    "exir.backend.backend_details": {
        **_same("BackendDetails", "CompileSpec", "PreprocessResult"),
        "enforcedmethod": _NODES,
        "ExportedProgram": "torch.export",
    },
    "exir.backend.compile_spec_schema": _same("CompileSpec"),
    "exir.backend.partitioner": _same("DelegationSpec", "PartitionResult", "Partitioner"),
    "exir.backend.operator_support": {
        **_same("DontPartition", "DontPartitionModule", "DontPartitionName"),
        "DontSupportBase": "rushlight.partition.support",
    },
    "exir.backend.utils": {
        **_same(
            "DelegateMappingBuilder",
            "ReportRejected",
            "WhyNoPartition",
            "WhyNoPartitionReporter",
            "get_delegated_payload",
            "get_delegates",
            "get_non_lowered_nodes",
            "is_identical_graph",
            "is_shape_dynamic",
            "remove_first_quant_and_last_dequant",
            "tag_constant_data",
            "tag_mutated_buffer",
        ),
        **dict.fromkeys(("T_DQuantPerTensor", "T_QuantPerTensor", "is_same_node"), _NODES),
        "replace_quantized_partition_with_op": "rushlight.exir.backend.quantized_partition",
        "format_delegated_graph": "rushlight.inspect",
        "print_delegated_graph": "rushlight.inspect",
    },
    f"{_CANONICAL}.pattern_op_partitioner": _same(
        "generate_grouped_partitions_from_list_of_nodes",
        "generate_partitions_from_list_of_nodes",
        "generate_pattern_op_partitions",
    ),
    f"{_CANONICAL}.config_partitioner": {
        **_same("ConfigerationBasedPartitioner", "PartitionerConfig", "format_target_name"),
        "DSJ": _NODES,
        "is_constant_data": _NODES,
    },
    f"{_CANONICAL}.all_node_partitioner": {
        **_same("AllNodePartitioner"),
        "is_non_tensor_placeholder": _NODES,
    },
    f"{_CANONICAL}.duplicate_dequant_node_pass": {
        "DequantDuplicator": _DUPLICATE,
        "DuplicateDequantNodePass": _DUPLICATE,
        "T_DQuantPerTensor": _NODES,
    },
    f"{_CANONICAL}.duplicate_constant_node_pass": {
        "duplicate_constant_node": "rushlight.exir.passes"
    },
    f"{_CANONICAL}.group_partitioner": _same("GroupBasedPartitioner"),
    "exir._serialize._named_data_store": _same("NamedDataStore", "NamedDataStoreOutput"),
    "exir.backend.test.backend_with_compiler_demo": {
        "BackendWithCompilerDemo": "rushlight.backends.demo"
    },
    "exir.backend.test.op_partitioner_demo": {"AddMulPartitionerDemo": "rushlight.backends.demo"},
}

ABSENT: dict[str, str] = {}
