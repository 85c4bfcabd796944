"""The errors Rushlight raises: each says what happened, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any


class Code(IntEnum):
    """Error codes, with ExecuTorch's numbers."""

    OK = 0x00
    INTERNAL = 0x01
    INVALID_STATE = 0x02
    END_OF_METHOD = 0x03
    ALREADY_LOADED = 0x04
    NOT_SUPPORTED = 0x10
    NOT_IMPLEMENTED = 0x11
    INVALID_ARGUMENT = 0x12
    INVALID_TYPE = 0x13
    OPERATOR_MISSING = 0x14
    REGISTRATION_EXCEEDING_MAX_KERNELS = 0x15
    REGISTRATION_ALREADY_REGISTERED = 0x16
    NOT_FOUND = 0x20
    MEMORY_ALLOCATION_FAILED = 0x21
    ACCESS_FAILED = 0x22
    INVALID_PROGRAM = 0x23
    INVALID_EXTERNAL_DATA = 0x24
    OUT_OF_RESOURCES = 0x25
    DELEGATE_INVALID_COMPATIBILITY = 0x30
    DELEGATE_MEMORY_ALLOCATION_FAILED = 0x31
    DELEGATE_INVALID_HANDLE = 0x32


class Error(RuntimeError):
    """Base of all errors of this package.

    Attributes:
        code: a :class:`Code`.
        where: method, instruction, operator and Python line, as far as known; "" if nothing is.
    """

    def __init__(self, message: str, *, code: Code = Code.INTERNAL, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.code = code
        self.where = where


class ExportError(Error):
    """A model cannot be exported, or its program does not compute what eager computes.

    Attributes:
        findings: what is in the way (`rushlight.ir.findings.Finding`), each with the line of
            Python, what to do, and a page of the gallery; empty if the model is not at fault.
    """

    def __init__(
        self,
        message: str,
        *,
        code: Code = Code.INTERNAL,
        where: str = "",
        findings: Sequence[Any] = (),
    ) -> None:
        super().__init__(message, code=code, where=where)
        self.findings = list(findings)


class LoadError(Error):
    """A file is not a program that this runtime can load."""


class RunError(Error):
    """A call was refused or failed; nothing of the module's state was changed by a refusal."""
