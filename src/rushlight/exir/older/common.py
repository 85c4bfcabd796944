"""Small helpers of ExecuTorch's sources that scripts import."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator

import torch

from rushlight.errors import Code, ExportError

# The version of the schema that programs say.
EXECUTORCH_SCHEMA_VERSION = 0


def internal_assert(pred: bool, assert_msg: str) -> None:
    """Raise an ExportError unless `pred` holds."""
    if not pred:
        raise ExportError(assert_msg, code=Code.INTERNAL)


def format_schema_name(schema: torch._C.FunctionSchema) -> str:
    """The name of a schema with its overload: "aten::add.Tensor"."""
    return f"{schema.name}.{schema.overload_name}".rstrip(".")


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """Calls of operators go to kernels, past `__torch_dispatch__`."""
    guard = torch._C._DisableTorchDispatch()
    try:
        yield
    finally:
        del guard


@contextlib.contextmanager
def override_logger(
    newLevel: int = logging.DEBUG,  # noqa: N803 - ExecuTorch's own name
    fmtstr: str = "%(message)s",
    filename: str | None = None,
) -> Iterator[None]:
    """Another level and format of the root logger.

    Args:
        newLevel: the level.
        fmtstr: the format of the handlers; "" leaves theirs.
        filename: a file that gets the messages, too.
    """
    root = logging.root
    level, formatters = root.level, [(h, h.formatter) for h in root.handlers]
    file = logging.FileHandler(filename, mode="w") if filename else None
    root.setLevel(newLevel)
    if fmtstr:
        for handler, _ in formatters:
            handler.setFormatter(logging.Formatter(fmtstr))
    if file is not None:
        root.addHandler(file)
    try:
        yield
    finally:
        root.setLevel(level)
        for handler, formatter in formatters:
            handler.setFormatter(formatter)
        if file is not None:
            root.removeHandler(file)
            file.close()


@contextlib.contextmanager
def setting_python_recursive_limit(limit: int = 10000) -> Iterator[None]:
    """A higher limit of recursion, for pickles of deep modules."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, before))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
