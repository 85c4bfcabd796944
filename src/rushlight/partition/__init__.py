"""Delegation: parts of a graph, tagged by a partitioner, compiled by a backend, called as one."""

from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate

from rushlight.partition.debug_map import DelegateMappingBuilder
from rushlight.partition.details import BackendDetails, PreprocessResult
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.partition.named_data import NamedDataStore, NamedDataStoreOutput
from rushlight.partition.partitioner import DelegationSpec, Partitioner, PartitionResult
from rushlight.partition.to_backend import MethodProgramsPartitionerSpec, to_backend
from rushlight.schema.program import CompileSpec

__all__ = [
    "BackendDetails",
    "CompileSpec",
    "DelegateMappingBuilder",
    "DelegationSpec",
    "LoweredBackendModule",
    "MethodProgramsPartitionerSpec",
    "NamedDataStore",
    "NamedDataStoreOutput",
    "PartitionResult",
    "Partitioner",
    "PreprocessResult",
    "executorch_call_delegate",
    "to_backend",
]
