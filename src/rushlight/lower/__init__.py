"""Functional → out-variants on planned tensors."""

from rushlight.lower.lower import lower
from rushlight.lower.method import Buffer, Constant, LoweredMethod

__all__ = ["Buffer", "Constant", "LoweredMethod", "lower"]
