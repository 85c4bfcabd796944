"""Delegation: partitioners, backends and what they make."""

from __future__ import annotations

from executorch._absent import absent

__all__ = []

__getattr__ = absent(__name__)
