"""Symbolic sizes: their bounds, and which of them the inputs tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from rushlight.errors import Code, ExportError

_UNBOUNDED = 2**31 - 1  # sizes are int32 in the file

Size = int | torch.SymInt


@dataclass
class Bounds:
    """The ranges of a program's symbols.

    Attributes:
        ranges: symbol, or derived size, to its range of values.
    """

    ranges: dict[sympy.Expr, ValueRanges[Any]]
    _cache: dict[sympy.Expr, tuple[int, int | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, program: ExportedProgram) -> Bounds:
        """The bounds that `program` was captured with."""
        return cls({**_settled(program), **program.range_constraints})

    def interval(self, size: Size) -> tuple[int, int | None]:
        """(least, greatest) value; greatest is None where there is no bound."""
        if isinstance(size, int):
            return size, size
        return self.interval_of(size.node.expr)

    def interval_of(self, expr: sympy.Expr) -> tuple[int, int | None]:
        """`interval` of a size that is given as its expression."""
        if expr.is_Integer:
            return int(expr), int(expr)
        if expr not in self._cache:
            found = bound_sympy(expr, self.ranges) & self.ranges.get(expr, ValueRanges.unknown())
            low = int(found.lower) if found.lower > 0 else 0  # may be minus infinity
            finite = found.upper < _UNBOUNDED
            self._cache[expr] = (low, int(found.upper) if finite else None)
        return self._cache[expr]

    def upper(self, size: Size, what: str) -> int:
        """The greatest value of `size`, which `what` names in the message.

        Raises:
            ExportError: if there is none: memory could not be planned.
        """
        _, high = self.interval(size)
        if high is None:
            named = re.fullmatch(r"(.+): size (\d+)", what)
            name, dim = (named[1], named[2]) if named else ("x", "0")
            remedy = (
                f"dimension a maximum, as in "
                f'dynamic_shapes={{"{name}": {{{dim}: Dim("batch", max=64)}}}}'
            )
            if free_unbacked_symbols(size):
                remedy = "value one in the model, as in torch._check(result.shape[0] <= 64)"
            raise ExportError(
                f"{what} = {size} has no upper bound, so its memory cannot be planned: give its "
                f"{remedy}",
                code=Code.NOT_SUPPORTED,
            )
        return high

    def describe_number(self, number: torch.SymInt) -> dict[str, Any]:
        """An integer input as the contract writes it; it needs no bound and may be negative."""
        expr = number.node.expr
        found = bound_sympy(expr, self.ranges)
        low = int(found.lower) if found.lower > -(2**63) else -(2**63)
        high = int(found.upper) if found.upper < 2**63 - 1 else 2**63 - 1
        key = "sym" if expr.is_Symbol else "expr"
        return {"min": low, "max": high, key: PythonPrinter().doprint(expr)}

    def describe(self, size: Size, what: str) -> int | dict[str, Any]:
        """A size as the contract writes it: an int, or its range and symbol or expression."""
        low, high = self.interval(size)
        if low == high:
            return low
        expr = size.node.expr  # type: ignore[union-attr]
        key = "sym" if expr.is_Symbol else "expr"
        return {"min": low, "max": self.upper(size, what), key: PythonPrinter().doprint(expr)}


def _settled(program: ExportedProgram) -> dict[sympy.Expr, ValueRanges[Any]]:
    """Derived sizes that a guard holds to one number, which their intervals do not show: a
    reshape's size is often written as a quotient of the others."""
    modes = (getattr(n.meta.get("val"), "fake_mode", None) for n in program.graph.nodes)
    environment = next((mode.shape_env for mode in modes if mode is not None), None)
    found = {}
    for guard in getattr(environment, "guards", None) or ():
        if isinstance(guard.expr, sympy.Eq):
            for size, number in (guard.expr.args, guard.expr.args[::-1]):
                if number.is_Integer and not size.is_Integer:
                    found[size] = ValueRanges(number, number)
    return found


def input_sizes(program: ExportedProgram) -> list[Size]:
    """The sizes of the tensors that a call passes, and the integers among its inputs."""
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    found: list[Size] = []
    for spec in program.graph_signature.input_specs:
        value = values.get(getattr(spec.arg, "name", ""))
        if spec.kind == InputKind.USER_INPUT and isinstance(value, torch.Tensor):
            found += value.shape
        elif spec.kind == InputKind.USER_INPUT and isinstance(value, torch.SymInt):
            found.append(value)
    return found


def told_symbols(sizes: Iterable[Any]) -> set[sympy.Symbol]:
    """The symbols that a call tells: those of a size of their own, and those that are the only
    unknown of a derived size.

    Args:
        sizes: the sizes of the inputs, and the integers among them.
    """
    expressions = [size.node.expr for size in sizes if isinstance(size, torch.SymInt)]
    told = {e for e in expressions if e.is_Symbol}
    for expression in expressions:
        unknown = expression.free_symbols - told
        if len(unknown) == 1:
            told |= unknown
    return told
