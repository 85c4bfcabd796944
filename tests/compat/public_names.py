"""The public names of real ExecuTorch: read from its installed sources, without importing them.

A name is public if neither it nor its module begins with an underscore, and the module is no test.
A module has the names of its `__all__`, the functions, classes and values that it defines, and in a
package (`__init__.py`) those that it imports from ExecuTorch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOTS = (
    *("exir", "export", "devtools", "runtime"),
    *("extension/pybindings", "extension/training", "extension/flat_tensor"),
    *("extension/llm/export", "extension/llm/runner"),
    *("backends/xnnpack/partition", "backends/xnnpack/quantizer"),
    *("backends/xnnpack/utils", "backends/xnnpack/recipes", "backends/xnnpack/__init__.py"),
    *("backends/transforms", "backends/openvino", "backends/apple/coreml", "kernels/quantized"),
)
# What a module has for itself: its logger, its type variables.
OWN = frozenset({"Fn", "FORMAT", "K", "T", "aten", "cs", "lib", "log", "logger", "why"})


def public_names(package: Path) -> dict[str, list[str]]:
    """By module (without `executorch.`), the public names of an installed package."""
    found: dict[str, list[str]] = {}
    for root in ROOTS:
        base = package / root
        for file in sorted(base.rglob("*.py")) if base.is_dir() else [base]:
            parts = file.relative_to(package).with_suffix("").parts
            if any(map(_is_hidden, parts)):
                continue
            names = sorted(set(_names(file)) - OWN)
            if names:
                found[".".join(part for part in parts if part != "__init__")] = names
    return found


def _is_hidden(part: str) -> bool:
    if part == "__init__":
        return False
    is_test = part in ("test", "tests") or part.startswith("test_") or part.endswith("_test")
    return is_test or part.startswith("_")


def _names(file: Path) -> Iterator[str]:
    is_package = file.name == "__init__.py"
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        for name in _of_statement(node, is_package):
            if not name.startswith("_") and name != "*":
                yield name


def _of_statement(node: ast.stmt, is_package: bool) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.ImportFrom) and is_package:
        if node.level or (node.module or "").startswith("executorch"):
            yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if not isinstance(target, ast.Name):
                continue
            if target.id == "__all__" and isinstance(node.value, ast.List | ast.Tuple):
                yield from (e.value for e in node.value.elts if isinstance(e, ast.Constant))
            else:
                yield target.id
