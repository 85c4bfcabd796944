"""The operator that calls a delegate."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import executorch_call_delegate

__all__ = [
    "executorch_call_delegate",
]

__getattr__ = absent(__name__)
