"""Partitions from patterns."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import (
    generate_grouped_partitions_from_list_of_nodes,
    generate_partitions_from_list_of_nodes,
    generate_pattern_op_partitions,
)

__all__ = [
    "generate_grouped_partitions_from_list_of_nodes",
    "generate_partitions_from_list_of_nodes",
    "generate_pattern_op_partitions",
]

__getattr__ = absent(__name__)
