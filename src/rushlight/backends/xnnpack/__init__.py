"""ExecuTorch's XNNPACK delegate: parts of a graph become payloads that its runtime reads, too."""

from rushlight.backends.xnnpack.partitioner import XnnpackPartitioner
from rushlight.backends.xnnpack.preprocess import XnnpackBackend

__all__ = ["XnnpackBackend", "XnnpackPartitioner"]
