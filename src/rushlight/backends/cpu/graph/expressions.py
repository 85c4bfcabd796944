"""Sizes as expressions in the sizes of a delegate's inputs, and the payload's table of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import sympy
from torch.utils._sympy.functions import FloorDiv

from rushlight.backends.cpu.graph.sizes import (
    CHOICES_MAX,
    CHOICES_MIN,
    MODULO,
    Size,
    Sizes,
    simple,
    terms_of,
)
from rushlight.schema.cpu_engine import Expression, ExpressionKind

Shown: TypeAlias = Sequence[Sizes | Size]
"""The inputs of a delegate: the sizes of each tensor, or a number."""


class Known:
    """The symbols and terms that the inputs' sizes determine.

    A symbol is known if it is a size itself, or if a size can be solved for it: s from 2 s + 1. So
    is a term of several symbols: (s - 1) // 2 from a size of (s - 1) // 2 + 1. If a size is s + t
    and neither is known, one is written as the size minus the other, so that s + t + 1 is known.

    Args:
        shown: the inputs.
    """

    def __init__(self, shown: Shown) -> None:
        self.places: dict[sympy.Expr, tuple[int, int]] = {}
        self._terms: dict[sympy.Expr, sympy.Expr] = {}
        waiting = []
        for i, argument in enumerate(shown):
            sizes = [(-1, argument)] if not isinstance(argument, tuple) else enumerate(argument)
            waiting += [(i, d, size) for d, size in sizes if not isinstance(size, int)]
        waiting.sort(key=lambda place: not place[2].is_Symbol)
        while waiting:
            for most in (1, len(waiting) + 1):
                solvable = next((p for p in waiting if self._learn(*p, most)), None)
                if solvable is not None:
                    break
            else:
                return
            waiting.remove(solvable)

    def _learn(self, index: int, dim: int, size: sympy.Expr, most: int) -> bool:
        """Solve a size that has at most `most` unknown terms for one of them; whether it can be."""
        left = sympy.sympify(self.of(size))
        unknown = [(c, term) for c, term in terms_of(left) if not self._is_known(term)]
        whole = [(c, term) for c, term in unknown if abs(c) == 1]
        if not unknown or len(unknown) > most or not (whole or len(unknown) == 1):
            return False
        count, term = (whole or unknown)[0]
        if not count.is_Integer:
            return False
        place = sympy.Symbol(f"input{index}_{dim}", integer=True)
        self.places[place] = (index, dim)
        rest = place - (left - count * term)
        rest = rest if count > 0 else -rest
        self._terms[term] = sympy.sympify(simple(FloorDiv(rest, abs(count))))
        return True

    def of(self, size: Size) -> Size:
        """A size in terms of the inputs' sizes, as far as these determine it."""
        if isinstance(size, int):
            return size
        replaced = simple(self._replaced(size))
        return replaced if replaced == size else self.of(replaced)

    def _replaced(self, expression: sympy.Expr) -> sympy.Expr:
        if expression in self._terms:
            return self._terms[expression]
        if not expression.args:
            return expression
        if isinstance(expression, FloorDiv) and expression.args[1].is_Integer:
            # (s + 3) // 4 from (s + 1) // 2: torch makes one quotient of two.
            whole, divisor = expression.args
            for term in self._terms:
                part = term.args[1] if isinstance(term, FloorDiv) else divisor
                if part != divisor and divisor % part == 0:
                    once = sympy.sympify(self.of(simple(FloorDiv(whole, part))))
                    if self._is_known(once):
                        return FloorDiv(once, divisor // part)
        count, term = expression.as_coeff_Mul()
        if count != 1:
            return count * self._replaced(term)
        made = expression.func(*map(self._replaced, expression.args))
        return self._terms.get(made, made)

    def tells(self, size: Size) -> bool:
        """Whether a size follows from the inputs' sizes."""
        if isinstance(size, int):
            return True
        return self._is_known(sympy.sympify(self.of(size)))

    def _is_known(self, expression: sympy.Expr) -> bool:
        return bool(expression.free_symbols <= self.places.keys())


class Table:
    """The expressions of a payload.

    Args:
        known: the symbols and terms that the inputs determine.
    """

    def __init__(self, known: Known) -> None:
        self.rows: list[Expression] = []
        self._known = known
        self._numbers: dict[tuple[ExpressionKind, int, int], int] = {}
        self._row_numbers: dict[Size, int] = {}

    def number(self, size: Size) -> int:
        """The row of a size; -1 if it does not depend on the inputs."""
        if isinstance(size, int):
            return -1
        if size not in self._row_numbers:
            self._row_numbers[size] = self._write(sympy.sympify(self._known.of(size)))
        return self._row_numbers[size]

    def numbers(self, sizes: Sizes) -> list[int] | None:
        """The row of each size; None if none depends on the inputs."""
        return None if all(isinstance(s, int) for s in sizes) else [self.number(s) for s in sizes]

    def _write(self, expression: sympy.Expr) -> int:
        if expression.is_Integer:
            return self._row(ExpressionKind.CONSTANT, int(expression))
        if expression in self._known.places:
            return self._row(ExpressionKind.INPUT_SIZE, *self._known.places[expression])
        kind = kind_of(expression)
        assert kind is not None, f"the partitioner takes no size {expression}"
        args: Iterable[Any] = expression.args
        if expression.is_Pow:
            args = [expression.base] * int(expression.exp)
        first, *rest = [self._write(arg) for arg in args]
        for other in rest:
            first = self._row(kind, first, other)
        return first

    def _row(self, kind: ExpressionKind, a: int, b: int = 0) -> int:
        key = (kind, a, b)
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(Expression(kind, a, b))
        return self._numbers[key]


def is_written(size: Size) -> bool:
    """Whether the payload can express a size, if its symbols are known."""
    if isinstance(size, int):
        return True
    parts = sympy.preorder_traversal(size)
    return all(part.is_Integer or part.is_Symbol or kind_of(part) is not None for part in parts)


def kind_of(expression: sympy.Expr) -> ExpressionKind | None:
    """The payload's operation for an expression; None if it has none."""
    if expression.is_Add:
        return ExpressionKind.ADD
    if expression.is_Mul or (
        expression.is_Pow and expression.exp.is_Integer and expression.exp > 0
    ):
        return ExpressionKind.MULTIPLY
    for types, kind in (
        (FloorDiv, ExpressionKind.FLOOR_DIVIDE),
        (MODULO, ExpressionKind.MODULO),
        (CHOICES_MAX, ExpressionKind.MAXIMUM),
        (CHOICES_MIN, ExpressionKind.MINIMUM),
    ):
        if isinstance(expression, types):
            return kind
    return None
