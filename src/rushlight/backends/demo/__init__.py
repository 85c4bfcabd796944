"""The demo backend: a part of a graph as a few lines of text. The example to begin a backend with.

`cpp/backends/demo/demo_backend.h` has the grammar and the runtime half, which is always there.
"""

from rushlight.backends.demo.demo import BackendWithCompilerDemo
from rushlight.backends.demo.partitioners import AddMulPartitionerDemo, DemoPartitioner

__all__ = ["AddMulPartitionerDemo", "BackendWithCompilerDemo", "DemoPartitioner"]
