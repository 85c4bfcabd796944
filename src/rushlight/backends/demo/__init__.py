"""The demo backend: it writes a partition as a few lines of text. The example for a new backend.

`cpp/backends/demo/demo_backend.h` has the grammar and the runtime, which is always built in.
"""

from rushlight.backends.demo.demo import BackendWithCompilerDemo
from rushlight.backends.demo.partitioners import AddMulPartitionerDemo, DemoPartitioner

__all__ = ["AddMulPartitionerDemo", "BackendWithCompilerDemo", "DemoPartitioner"]
