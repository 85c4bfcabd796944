"""OpenVINO's partitioner."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.backends.openvino import OpenvinoPartitioner

__all__ = [
    "OpenvinoPartitioner",
]

__getattr__ = absent(__name__)
