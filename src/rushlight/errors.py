"""The errors Rushlight raises: each says what happened, where, and what to do about it."""

from __future__ import annotations

import functools
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar


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
    CANCELLED = 0x80  # not one of ExecuTorch's


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
        findings: the faults of the model (`rushlight.ir.findings.Finding`), each with the line of
            Python, advice, and a page of the gallery; empty if the model is not at fault.
        sources: the places in the model that it is about (`rushlight.schema.source.Source`), those
            of the findings unless others are given; empty if it is about none.
    """

    def __init__(
        self,
        message: object,
        text: str = "",
        *,
        code: Code = Code.INTERNAL,
        where: str = "",
        findings: Sequence[Any] = (),
        sources: Sequence[Any] = (),
    ) -> None:
        # Scripts for ExecuTorch give the kind of an error and its text.
        super().__init__(f"[{message}]: {text}" if text else str(message), code=code, where=where)
        self.findings = list(findings)
        places = sources or [finding.source for finding in findings]
        self.sources = [place for place in places if place.full]


class ExportValueError(ExportError, ValueError):
    """A value is not one that may be given, which ExecuTorch tells by a `ValueError`."""


class ExportNotImplementedError(ExportError, NotImplementedError):
    """What is asked for is not built, which ExecuTorch tells by a `NotImplementedError`."""


class LoadError(Error):
    """A file is not a program that this runtime can load.

    Attributes:
        problem: the message without advice.
    """

    def __init__(
        self, message: str, *, code: Code = Code.INTERNAL, where: str = "", advice: str = ""
    ) -> None:
        super().__init__(message + advice, code=code, where=where)
        self.problem = f"{where}: {message}" if where else message


class RunError(Error):
    """A call was refused or failed; nothing of the module's state was changed by a refusal."""


REPORT_IT = "report it, with the model that shows it, to the project's issue tracker"
"""Advice for an error of Rushlight itself."""

_OURS = str(Path(__file__).parent)
_STANDARD = sysconfig.get_paths()["stdlib"]
# Packages that we call: an error in their code is ours if our code called it.
_CALLED = ("torch", "torchao", "sympy", "numpy")
F = TypeVar("F", bound=Callable[..., Any])


def internal_error(error: Exception, where: str = "") -> ExportError:
    """An error that says that its cause, `error`, is a fault of Rushlight.

    Args:
        error: the exception that was raised.
        where: the stage, method or backend.
    """
    frame = next((f for f in _frames(error)[::-1] if f.filename.startswith(_OURS)), None)
    at = f", at {Path(frame.filename).name}:{frame.lineno} in {frame.name}" if frame else ""
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ExportError(
        f"{told}{at}. This is an error of Rushlight itself: {REPORT_IT}", where=where
    )


def names_internal_errors(stage: F) -> F:
    """Makes a stage turn unexpected exceptions into errors that report a fault of Rushlight.

    Exceptions of the caller's own code, such as a pass or a callback, are not changed.
    """

    @functools.wraps(stage)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return stage(*args, **kwargs)
        except Error:
            raise
        except Exception as error:
            if not _is_caused_by_us(error):
                raise
            raise internal_error(error) from error

    return wrapped  # type: ignore[return-value]


def answers_keywords(**advice: str) -> Callable[[F], F]:
    """Makes a function give advice on keywords that it does not take but a user may expect.

    Args:
        advice: for each such keyword, what to write instead.
    """

    def decorated(function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs.keys() & advice.keys():
                raise TypeError(f"{function.__name__}() takes no {name}=: {advice[name]}")
            return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return decorated


def _frames(error: Exception) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def raised_by_us(error: Exception) -> bool:
    """Whether the line that raised is in this package."""
    frames = _frames(error)
    return bool(frames) and frames[-1].filename.startswith(_OURS)


def _is_caused_by_us(error: Exception) -> bool:
    """Whether the innermost frame outside of Python and the packages that we call is ours."""
    frames = [f for f in _frames(error) if not _is_called(f.filename)]
    return bool(frames) and frames[-1].filename.startswith(_OURS)


def _is_called(filename: str) -> bool:
    if filename.startswith("<"):  # generated code, as torch.fx makes it
        return True
    _, _, package = filename.rpartition("site-packages/")
    if package != filename:
        return package.partition("/")[0] in _CALLED
    return filename.startswith(_STANDARD)
