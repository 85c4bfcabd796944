"""Core ML: compiles partitions on any machine; they run only with Apple's frameworks.

`PARTITIONER` is what `rushlight.export(..., backend="coreml")` uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.backends.coreml.partitioner import CoreMLPartitioner
    from rushlight.backends.coreml.preprocess import CoreMLBackend

    PARTITIONER = CoreMLPartitioner

__all__ = ["PARTITIONER", "CoreMLBackend", "CoreMLPartitioner"]


def __getattr__(name: str) -> Any:
    if name == "CoreMLBackend":
        from rushlight.backends.coreml.preprocess import CoreMLBackend

        return CoreMLBackend
    if name in ("PARTITIONER", "CoreMLPartitioner"):
        from rushlight.backends.coreml.partitioner import CoreMLPartitioner

        return CoreMLPartitioner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
