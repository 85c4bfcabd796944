"""Symbolic sizes as numbers: by their example, or by their greatest value."""

from __future__ import annotations

from collections.abc import Iterable

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import bound_sympy

from rushlight.errors import Code, ExportError

Size = int | torch.SymInt


def eval_expr(symint: Size) -> int | None:
    """The example value of a size; None if it depends on data and has none."""
    if isinstance(symint, int):
        return symint
    try:
        return int(symint.node.shape_env.guarding_hint_or_throw(symint.node.expr))
    except GuardOnDataDependentSymNode:
        return None


def eval_upper_bound(maybe_symint: Size) -> int:
    """The greatest value of a size that its constraints allow; its example if they allow any.

    Raises:
        ExportError: the size depends on data, and has no bound.
    """
    if isinstance(maybe_symint, int):
        return maybe_symint
    node = maybe_symint.node
    most = bound_sympy(node.expr, node.shape_env.var_to_range).upper
    if isinstance(most, sympy.Integer):
        return int(most)
    example = eval_expr(maybe_symint) if most is int_oo else None
    if example is None:
        raise ExportError(
            f"the size {node.expr} has no greatest value: give one with torch.export.Dim(max=...), "
            f"or with torch._check for a size that depends on data",
            code=Code.INVALID_ARGUMENT,
        )
    return example


def eval_shape(shape: Iterable[Size]) -> list[int | None]:
    """The example values of sizes; None for those that depend on data."""
    return [eval_expr(size) for size in shape]


def eval_shape_upper_bound(shape: Iterable[Size]) -> list[int]:
    """The greatest values of sizes."""
    return [eval_upper_bound(size) for size in shape]


def collect_free_symbols(shape: Iterable[Size]) -> set[sympy.Symbol]:
    """The symbols that sizes are computed of."""
    symbols: set[sympy.Symbol] = set()
    for size in shape:
        if isinstance(size, torch.SymInt):
            symbols |= size.node.expr.free_symbols
    return symbols
