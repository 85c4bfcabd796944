"""Operators of your own: `custom_op` over a reference in Python."""

from __future__ import annotations

from rushlight.custom.operator import CustomOp, custom_op

__all__ = ["CustomOp", "custom_op"]
