"""The operator that allocates a tensor."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.ir.alloc import alloc

__all__ = [
    "alloc",
]

__getattr__ = absent(__name__, "views are made by remove_view_copy=True of ExecutorchBackendConfig")
