"""What work costs on one core of a common processor; only shares of it are meaningful."""

from __future__ import annotations

_FLOPS_PER_US = 50e3
_BYTES_PER_US = 10e3


def estimated_cost(flops: float, moved: float) -> float:
    """Estimated microseconds of arithmetic operations while bytes are moved."""
    return max(flops / _FLOPS_PER_US, moved / _BYTES_PER_US)
