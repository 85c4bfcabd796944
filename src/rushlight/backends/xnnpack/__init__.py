"""ExecuTorch's XNNPACK delegate: parts of a graph become payloads that its runtime reads, too.

The reader of its payloads needs no torch, so nothing that does is imported before it is used.
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
