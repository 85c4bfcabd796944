"""OpenVINO. Its compiler needs torch and its runtime does not, so nothing is imported here.

`PARTITIONER` is what `rushlight.export(..., backend="openvino")` uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.backends.openvino.partitioner import OpenvinoPartitioner
    from rushlight.backends.openvino.preprocess import OpenvinoBackend

    PARTITIONER = OpenvinoPartitioner

__all__ = ["PARTITIONER", "OpenvinoBackend", "OpenvinoPartitioner"]


def __getattr__(name: str) -> Any:
    if name == "OpenvinoBackend":
        from rushlight.backends.openvino.preprocess import OpenvinoBackend

        return OpenvinoBackend
    if name in ("PARTITIONER", "OpenvinoPartitioner"):
        from rushlight.backends.openvino.partitioner import OpenvinoPartitioner

        return OpenvinoPartitioner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
