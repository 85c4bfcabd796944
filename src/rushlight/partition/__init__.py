"""Delegation: a partitioner tags nodes, a backend compiles each partition, and one call runs it."""

from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate

from rushlight.partition.capability import CapabilityBasedPartitioner, GroupBasedPartitioner
from rushlight.partition.debug_map import DelegateMappingBuilder
from rushlight.partition.details import BackendDetails, PreprocessResult
from rushlight.partition.graphs import (
    get_control_flow_submodules,
    get_delegated_payload,
    get_delegates,
    get_lowered_submodules,
    get_non_lowered_nodes,
    is_identical_graph,
    is_shape_dynamic,
    remove_first_quant_and_last_dequant,
)
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.partition.named_data import NamedDataStore, NamedDataStoreOutput
from rushlight.partition.options import names_in, spec_texts
from rushlight.partition.partitioner import DelegationSpec, Partitioner, PartitionResult
from rushlight.partition.partitioners import (
    AllNodePartitioner,
    ConfigerationBasedPartitioner,
    PartitionerConfig,
    SupportedOperatorPartitioner,
    format_target_name,
)
from rushlight.partition.patterns import (
    generate_grouped_partitions_from_list_of_nodes,
    generate_partitions_from_list_of_nodes,
    generate_pattern_op_partitions,
)
from rushlight.partition.support import (
    DontPartition,
    DontPartitionModule,
    DontPartitionName,
    ReportRejected,
    SupportedByReason,
    WhyNoPartition,
    WhyNoPartitionReporter,
)
from rushlight.partition.tags import tag_constant_data, tag_mutated_buffer, tag_partitions
from rushlight.partition.to_backend import (
    MethodProgramsPartitionerSpec,
    disable_validation,
    to_backend,
    validation_disabled,
)
from rushlight.schema.program import CompileSpec

__all__ = [
    "AllNodePartitioner",
    "BackendDetails",
    "CapabilityBasedPartitioner",
    "CompileSpec",
    "ConfigerationBasedPartitioner",
    "DelegateMappingBuilder",
    "DelegationSpec",
    "DontPartition",
    "DontPartitionModule",
    "DontPartitionName",
    "GroupBasedPartitioner",
    "LoweredBackendModule",
    "MethodProgramsPartitionerSpec",
    "NamedDataStore",
    "NamedDataStoreOutput",
    "PartitionResult",
    "Partitioner",
    "PartitionerConfig",
    "PreprocessResult",
    "ReportRejected",
    "SupportedByReason",
    "SupportedOperatorPartitioner",
    "WhyNoPartition",
    "WhyNoPartitionReporter",
    "disable_validation",
    "executorch_call_delegate",
    "format_target_name",
    "generate_grouped_partitions_from_list_of_nodes",
    "generate_partitions_from_list_of_nodes",
    "generate_pattern_op_partitions",
    "get_control_flow_submodules",
    "get_delegated_payload",
    "get_delegates",
    "get_lowered_submodules",
    "get_non_lowered_nodes",
    "is_identical_graph",
    "is_shape_dynamic",
    "names_in",
    "remove_first_quant_and_last_dequant",
    "spec_texts",
    "tag_constant_data",
    "tag_mutated_buffer",
    "tag_partitions",
    "to_backend",
    "validation_disabled",
]
