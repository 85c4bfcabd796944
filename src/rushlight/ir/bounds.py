"""Symbolic sizes: their bounds, and the relations between them that capture found."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from rushlight.errors import Code, ExportError

_UNBOUNDED = 2**31 - 1  # sizes are int32 in the file

Size = int | torch.SymInt


@dataclass
class Bounds:
    """The ranges of a program's symbols.

    Attributes:
        ranges: symbol to its range of values.
        guards: relations between input sizes, as torch.export wrote them.
    """

    ranges: dict[sympy.Symbol, ValueRanges[Any]]
    guards: list[str] = field(default_factory=list)
    _cache: dict[sympy.Expr, tuple[int, int | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, program: ExportedProgram) -> Bounds:
        """The bounds that `program` was captured with."""
        return cls(
            dict(program.range_constraints), list(getattr(program, "_guards_code", None) or [])
        )

    def interval(self, size: Size) -> tuple[int, int | None]:
        """(least, greatest) value; greatest is None where there is no bound."""
        if isinstance(size, int):
            return size, size
        expr = size.node.expr
        if expr.is_Integer:
            return int(expr), int(expr)
        if expr not in self._cache:
            found = bound_sympy(expr, self.ranges)
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
            remedy = 'dimension a maximum, as in dynamic_shapes={"x": {0: Dim("batch", max=64)}}'
            if free_unbacked_symbols(size):
                remedy = "value one in the model, as in torch._check(result.shape[0] <= 64)"
            raise ExportError(
                f"{what} = {size} has no upper bound, so its memory cannot be planned: give its "
                f"{remedy}",
                code=Code.NOT_SUPPORTED,
            )
        return high

    def describe(self, size: Size, what: str) -> int | dict[str, Any]:
        """A size as the contract writes it: an int, or its range and symbol or expression."""
        low, high = self.interval(size)
        if low == high:
            return low
        expr = size.node.expr  # type: ignore[union-attr]
        key = "sym" if expr.is_Symbol else "expr"
        return {"min": low, "max": self.upper(size, what), key: str(expr)}

    def relations(self, sizes: dict[tuple[str, int], Size]) -> list[dict[str, str]]:
        """The guards on input sizes, over the symbols of the contract.

        Equal sizes share a symbol already, so guards that become trivial are left out.

        Args:
            sizes: (input name, dimension) to its size.
        """
        found = []
        for guard in self.guards:
            symbolic = readable = guard
            for match in _GUARDED_SIZE.finditer(guard):
                name, dim = match["name"], int(match["dim"])
                if (name, dim) not in sizes:
                    break
                symbolic = symbolic.replace(match[0], f"({sizes[name, dim]})")
                readable = readable.replace(match[0], f"size {dim} of {name}")
            if "L[" not in symbolic and not _trivial(symbolic):
                found.append({"expr": symbolic, "text": readable})
        return found


_GUARDED_SIZE = re.compile(r"L\['(?P<name>\w+)'\]\.size\(\)\[(?P<dim>\d+)\]")


def _trivial(guard: str) -> bool:
    left, equals, right = guard.partition(" == ")
    return bool(equals) and left.strip("() ") == right.strip("() ")
