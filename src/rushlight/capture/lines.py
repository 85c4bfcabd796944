"""Which line of the user's Python something comes from: of a raised error, of a guard on sizes."""

from __future__ import annotations

import contextlib
import linecache
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any
from unittest import mock

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from rushlight.ir.source import Source

_STANDARD = sysconfig.get_path("stdlib")
_TRACER = "/torch/export/"


def is_users(filename: str) -> bool:
    """Whether code of this file is neither Python's nor torch's nor ours."""
    if filename.startswith(_STANDARD) and "site-packages" not in filename:
        return False
    return Source(file=filename).is_users


def line_of(error: BaseException) -> Source:
    """The innermost line of the user's that raised `error` while it was traced."""
    frames = traceback.extract_tb(error.__traceback__)
    traced = [i for i, f in enumerate(frames) if _TRACER in f.filename]
    chosen = Source()
    for frame in frames[traced[0] + 1 if traced else 0 :]:
        if is_users(frame.filename):
            chosen = _source(frame.filename, frame.lineno or 0, frame.name)
    return chosen


def _source(filename: str, line: int, function: str) -> Source:
    return Source(filename, line, function, linecache.getline(filename, line).strip())


def _current_line() -> Source:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _TRACER not in frame.f_code.co_filename:
        code = frame.f_code
        if is_users(code.co_filename):
            return _source(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return Source()


@contextlib.contextmanager
def guard_lines() -> Iterator[dict[sympy.Basic, Source]]:
    """Records the line of every guard that is added meanwhile: torch keeps only its own lines."""
    lines: dict[sympy.Basic, Source] = {}
    original = ShapeEnv._log_guard

    def log_guard(self: Any, prefix: str, guard: sympy.Basic, *args: Any, **kwargs: Any) -> Any:
        lines.setdefault(guard, _current_line())
        return original(self, prefix, guard, *args, **kwargs)

    with mock.patch.object(ShapeEnv, "_log_guard", log_guard):
        yield lines
