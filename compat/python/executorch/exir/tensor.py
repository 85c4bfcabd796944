"""What is planned and written of a tensor."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.ir.spec import TensorSpec

__all__ = [
    "TensorSpec",
]

__getattr__ = absent(__name__, "TensorSpec has dtype, shape and dim_order")
