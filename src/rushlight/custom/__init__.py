"""Operators of your own: `custom_op` over a reference in Python, and `replace_pattern`."""

from __future__ import annotations

from rushlight.custom.operator import CustomOp, custom_op
from rushlight.custom.patterns import replace_pattern

__all__ = ["CustomOp", "custom_op", "replace_pattern"]
