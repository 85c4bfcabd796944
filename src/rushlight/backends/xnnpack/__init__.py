"""The XNNPACK delegate: partitions become payloads that ExecuTorch's runtime reads too.

The reader of payloads needs no torch, so modules that need it are imported only when used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.backends.xnnpack.partitioner import XnnpackPartitioner
    from rushlight.backends.xnnpack.preprocess import XnnpackBackend

__all__ = ["XnnpackBackend", "XnnpackPartitioner"]


def __getattr__(name: str) -> Any:
    if name == "XnnpackBackend":
        from rushlight.backends.xnnpack.preprocess import XnnpackBackend

        return XnnpackBackend
    if name == "XnnpackPartitioner":
        from rushlight.backends.xnnpack.partitioner import XnnpackPartitioner

        return XnnpackPartitioner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
