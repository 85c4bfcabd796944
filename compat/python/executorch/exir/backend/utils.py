"""Helpers for partitioners and backends."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.inspect.delegation import format_delegated_graph, print_delegated_graph
from rushlight.partition import (
    DelegateMappingBuilder,
    ReportRejected,
    WhyNoPartition,
    WhyNoPartitionReporter,
    get_delegated_payload,
    get_delegates,
    get_non_lowered_nodes,
    is_identical_graph,
    is_shape_dynamic,
    remove_first_quant_and_last_dequant,
    tag_constant_data,
    tag_mutated_buffer,
)

__all__ = [
    "DelegateMappingBuilder",
    "ReportRejected",
    "WhyNoPartition",
    "WhyNoPartitionReporter",
    "format_delegated_graph",
    "get_delegated_payload",
    "get_delegates",
    "get_non_lowered_nodes",
    "is_identical_graph",
    "is_shape_dynamic",
    "print_delegated_graph",
    "remove_first_quant_and_last_dequant",
    "tag_constant_data",
    "tag_mutated_buffer",
]

__getattr__ = absent(__name__)
