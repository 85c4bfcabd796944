"""Rushlight takes a PyTorch model ahead of time to one small file, and runs it without Python.

    program = rushlight.export(model, (x,))
    program.save("model.pte")

    module = rushlight.load("model.pte")  # needs no torch
    y = module(x)

Importing this package imports nothing else; the compiler side (and with it torch) is loaded when
one of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.accuracy.budget import quantize_within
    from rushlight.api import Program, export
    from rushlight.bundled.bundle import load_bundle
    from rushlight.bundled.case import TestCase
    from rushlight.bundled.make import bundle
    from rushlight.custom.operator import CustomOp, custom_op
    from rushlight.custom.patterns import replace_pattern
    from rushlight.errors import Code, Error, ExportError, LoadError, RunError
    from rushlight.linking import cmake_dir
    from rushlight.pipeline import (
        EdgeProgramManager,
        ExecutorchProgramManager,
        to_edge,
        to_edge_transform_and_lower,
    )
    from rushlight.quantization.workflow import quantize
    from rushlight.runtime.load import load
    from rushlight.runtime.module import Module

__version__ = "0.1.0"

__all__ = [
    "Code",
    "CustomOp",
    "EdgeProgramManager",
    "Error",
    "ExecutorchProgramManager",
    "ExportError",
    "LoadError",
    "Module",
    "Program",
    "RunError",
    "TestCase",
    "bundle",
    "cmake_dir",
    "custom_op",
    "export",
    "load",
    "load_bundle",
    "quantize",
    "quantize_within",
    "replace_pattern",
    "to_edge",
    "to_edge_transform_and_lower",
]

_HOMES = {
    "rushlight.api": ("Program", "export"),
    "rushlight.bundled.bundle": ("load_bundle",),
    "rushlight.bundled.case": ("TestCase",),
    "rushlight.bundled.make": ("bundle",),
    "rushlight.custom.operator": ("CustomOp", "custom_op"),
    "rushlight.custom.patterns": ("replace_pattern",),
    "rushlight.errors": ("Code", "Error", "ExportError", "LoadError", "RunError"),
    "rushlight.linking": ("cmake_dir",),
    "rushlight.pipeline.edge_manager": (
        "EdgeProgramManager",
        "to_edge",
        "to_edge_transform_and_lower",
    ),
    "rushlight.pipeline.finished": ("ExecutorchProgramManager",),
    "rushlight.accuracy.budget": ("quantize_within",),
    "rushlight.quantization.workflow": ("quantize",),
    "rushlight.runtime.load": ("load",),
    "rushlight.runtime.module": ("Module",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "llm":
        return import_module("rushlight.llm")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'rushlight' has no attribute {name!r}")
    try:
        value = getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"rushlight.{name} needs PyTorch, which is not installed: pip install "
            f"'rushlight[export]'",
            name="torch",
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
