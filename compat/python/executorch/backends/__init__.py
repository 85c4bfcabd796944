"""Backends."""

from __future__ import annotations

from executorch._absent import absent

__all__ = []

__getattr__ = absent(__name__)
