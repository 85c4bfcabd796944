"""Lowering to a backend."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import (
    LoweredBackendModule,
    MethodProgramsPartitionerSpec,
    disable_validation,
    to_backend,
    validation_disabled,
)

__all__ = [
    "LoweredBackendModule",
    "MethodProgramsPartitionerSpec",
    "disable_validation",
    "to_backend",
    "validation_disabled",
]

__getattr__ = absent(__name__)
