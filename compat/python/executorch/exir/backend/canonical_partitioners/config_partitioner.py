"""A partitioner of one configuration for each operator."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import ConfigerationBasedPartitioner, PartitionerConfig, format_target_name

__all__ = [
    "ConfigerationBasedPartitioner",
    "PartitionerConfig",
    "format_target_name",
]

__getattr__ = absent(__name__)
