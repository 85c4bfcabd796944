"""The cpu backend: models on the engine of cpp/engine, fused and packed ahead of time."""

from rushlight.backends.cpu.partitioner import CpuPartitioner
from rushlight.backends.cpu.preprocess import CpuBackend

__all__ = ["CpuBackend", "CpuPartitioner"]
