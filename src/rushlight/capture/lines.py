"""The line of the user's Python that raised an error or added a guard on sizes."""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from types import FrameType
from typing import Any
from unittest import mock

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv, uninteresting_files
from torch.fx.proxy import TracerBase

from rushlight.ir.findings import Finding
from rushlight.ir.source import in_users_code
from rushlight.ir.symbols import ITEM
from rushlight.schema.source import Source

_STANDARD = sysconfig.get_path("stdlib")
_TRACER = "/torch/export/"


@lru_cache(maxsize=4096)
def is_users(filename: str) -> bool:
    """Whether code of this file is neither Python's nor torch's nor ours."""
    if filename.startswith(_STANDARD) and "site-packages" not in filename:
        return False
    return in_users_code(filename)


def line_of(error: BaseException) -> Source:
    """The innermost line of the user's code that raised `error` during tracing."""
    return next(reversed(frames_of(error)), Source())


def frames_of(error: BaseException, model: torch.nn.Module | None = None) -> list[Source]:
    """The lines of the user's code that led to `error` during tracing, the outermost first, with
    the paths of the modules of `model` whose methods they are in."""
    paths = {} if model is None else {id(one): name for name, one in model.named_modules()}
    frames = list(traceback.walk_tb(error.__traceback__))
    traced = [i for i, (f, _) in enumerate(frames) if _TRACER in f.f_code.co_filename]
    path, users = "", []
    for frame, line in frames[traced[0] + 1 if traced else 0 :]:
        code = frame.f_code
        if is_users(code.co_filename):
            path = paths.get(id(frame.f_locals.get("self")), path)
            users.append(replace(_source(code.co_filename, line, code.co_name), module=path))
    return users


def with_frames(finding: Finding, frames: Sequence[Source]) -> Finding:
    """The finding with the module and the stack of its line, if the error went through it."""
    source = finding.source
    lines = [(frame.file, frame.line) for frame in frames]
    if source.module or (source.file, source.line) not in lines:
        return finding
    stack = frames[: lines.index((source.file, source.line)) + 1]
    source = replace(source, module=stack[-1].module)
    text = "\n".join(frame.as_frame for frame in stack)
    return replace(finding, source=source, stack=text)


def _source(filename: str, line: int, function: str) -> Source:
    return Source(filename, line, function, linecache.getline(filename, line).strip())


@contextlib.contextmanager
def lines_of_functions() -> Iterator[None]:
    """While active, captured nodes also keep the lines of functions that `forward` calls; torch
    alone keeps only lines of functions named `forward`."""

    def kept(tracer: TracerBase, stack: traceback.StackSummary) -> traceback.StackSummary:
        first = next((i for i, frame in enumerate(stack) if frame.name == "forward"), len(stack))
        frames = [f for f in stack[first:] if f.name == "forward" or is_users(f.filename)]
        ours = [f for f in frames if f.filename not in uninteresting_files()]
        return traceback.StackSummary.from_list(ours)

    with mock.patch.object(TracerBase, "_filter_traceback_frames", kept):
        yield


def symbol_texts(error: BaseException) -> dict[str, str]:
    """The symbols in an error of torch, and the user's name for each."""
    shapes = _shape_env_of(error)
    texts: dict[str, str] = {}
    if shapes is None:
        return texts
    for symbol, stack in shapes.var_to_stack.items():
        lines = [f for f in stack.summary() if is_users(f.filename)]
        item = ITEM.search(lines[-1].line or "") if lines else None
        if item is not None:
            place = f"{os.path.basename(lines[-1].filename)}:{lines[-1].lineno}"
            texts[str(symbol)] = f"the value of `{item[0]}` ({place})"
    for symbol, sources in shapes.var_to_sources.items():
        size = _SIZE.fullmatch(sources[0].name) if sources else None
        if size is not None:
            name = f"{size['name']}{size['rest']}"
            texts[str(symbol)] = f"size {size['dim']} of {name}" if size["dim"] else name
    return texts


_SIZE = re.compile(r"L\['(?P<name>\w+)'\](?P<rest>.*?)(?:\.size\(\)\[(?P<dim>\d+)\])?")


def _shape_env_of(error: BaseException) -> ShapeEnv | None:
    """The shape environment of the capture that raised `error`, from its stack frames."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in (frame.f_locals.get("self"), frame.f_locals.get("shape_env")):
            if isinstance(value, ShapeEnv):
                return value
    return None


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
    """While active, records the user's line of every guard; torch keeps only its own lines."""
    lines: dict[sympy.Basic, Source] = {}
    original = ShapeEnv._log_guard

    def log_guard(self: Any, prefix: str, guard: sympy.Basic, *args: Any, **kwargs: Any) -> Any:
        lines.setdefault(guard, _current_line())
        return original(self, prefix, guard, *args, **kwargs)

    with mock.patch.object(ShapeEnv, "_log_guard", log_guard):
        yield lines
