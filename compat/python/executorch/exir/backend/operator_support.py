"""Which nodes a partition leaves out."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import DontPartition, DontPartitionModule, DontPartitionName

__all__ = [
    "DontPartition",
    "DontPartitionModule",
    "DontPartitionName",
]

__getattr__ = absent(__name__)
