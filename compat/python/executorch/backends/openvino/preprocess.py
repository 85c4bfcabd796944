"""OpenVINO's compiler."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.backends.openvino import OpenvinoBackend

__all__ = [
    "OpenvinoBackend",
]

__getattr__ = absent(__name__)
