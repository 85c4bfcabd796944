"""The cpu backend: models on the engine of cpp/engine, fused and packed ahead of time.

The reader of its payloads needs no torch, so nothing that does is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.backends.cpu.partitioner import CpuPartitioner
    from rushlight.backends.cpu.preprocess import CpuBackend

__all__ = ["CpuBackend", "CpuPartitioner"]


def __getattr__(name: str) -> Any:
    if name == "CpuBackend":
        from rushlight.backends.cpu.preprocess import CpuBackend

        return CpuBackend
    if name == "CpuPartitioner":
        from rushlight.backends.cpu.partitioner import CpuPartitioner

        return CpuPartitioner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
