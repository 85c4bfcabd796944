"""ExecuTorch's kinds of export errors: `ExportError(ExportErrorType.NOT_SUPPORTED, "…")`."""

from __future__ import annotations

from enum import Enum


class ExportErrorType(Enum):
    """Why a model cannot be exported."""

    INVALID_INPUT_TYPE = 1
    INVALID_OUTPUT_TYPE = 2
    VIOLATION_OF_SPEC = 3
    NOT_SUPPORTED = 4
    MISSING_PROPERTY = 5
    UNINITIALIZED = 6
