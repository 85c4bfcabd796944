"""What a partitioner is."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import DelegationSpec, Partitioner, PartitionResult

__all__ = [
    "DelegationSpec",
    "PartitionResult",
    "Partitioner",
]

__getattr__ = absent(__name__)
