"""Sizes that may depend on the inputs' sizes: numbers, or expressions in one normalised spelling.

Nothing here uses the sizes of the example inputs: two sizes are equal only if they are equal for
all values of their symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import sympy
import torch
from torch.fx import Node
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod, PythonMod
from torch.utils._sympy.value_ranges import bound_sympy

from rushlight.ir.bounds import Bounds

Size: TypeAlias = int | sympy.Expr
Sizes: TypeAlias = tuple[Size, ...]

_LARGE = 997  # a symbol's value where sizes are compared for a choice that cannot be wrong
MODULO = (Mod, PythonMod)
CHOICES_MAX, CHOICES_MIN = (Max, sympy.Max), (Min, sympy.Min)


def size_of(number: Any) -> Size:
    """A number of a graph as a size: an int, a symbolic one, or the node that computes it."""
    if isinstance(number, Node):
        number = number.meta["val"]
    return simple(number.node.expr) if isinstance(number, torch.SymInt) else int(number)


def sizes_of(numbers: Iterable[Any]) -> Sizes:
    """Several numbers of a graph as sizes."""
    return tuple(n if type(n) is int else size_of(n) for n in numbers)


def shape_of(value: Any) -> Sizes:
    """The sizes of a node's tensor, or of a tensor."""
    return sizes_of((value.meta["val"] if isinstance(value, Node) else value).shape)


def same(one: Size, other: Size) -> bool:
    """Whether two sizes are equal for all inputs."""
    return bool(one == other)


def all_same(ones: Sequence[Size], others: Sequence[Size]) -> bool:
    """Whether as many sizes are equal for all inputs."""
    return len(ones) == len(others) and all(map(same, ones, others))


def simple(expression: Any) -> Size:
    """The normalised spelling of an expression: sums expanded, exact quotients divided."""
    return expression if type(expression) is int else _number(_simple(sympy.sympify(expression)))


def product(sizes: Iterable[Size]) -> Size:
    """The product; 1 of none."""
    return simple(math.prod(sizes))


def floor_divided(size: Size, divisor: Size) -> Size:
    """The quotient, rounded down."""
    return _number(_divided(sympy.sympify(size), sympy.sympify(divisor)))


def greater(one: Size, other: Size) -> Size:
    """The greater one."""
    return simple(Max(sympy.sympify(one), sympy.sympify(other)))


def at_most_one(size: Size) -> bool:
    """Whether a dimension has at most one element for all inputs."""
    return isinstance(size, int) and size <= 1


def magnitude(size: Size) -> int:
    """A number to sort sizes by, where any order is right."""
    if isinstance(size, int):
        return size
    return int(size.xreplace(dict.fromkeys(size.free_symbols, sympy.Integer(_LARGE))))


def limits(size: Size, bounds: Bounds) -> tuple[int | None, int | None]:
    """The least and the greatest value of a size; None where there is no limit."""
    if isinstance(size, int):
        return size, size
    value_range = bound_sympy(size, bounds.ranges)
    low, high = (int(n) if abs(n) < 2**62 else None for n in (value_range.lower, value_range.upper))
    return low, high


def at_bounds(size: Size, bounds: Bounds) -> int:
    """The value of a size when all its symbols have their greatest values, which must exist."""
    if isinstance(size, int):
        return size
    most = {symbol: sympy.Integer(limits(symbol, bounds)[1]) for symbol in size.free_symbols}
    return int(size.xreplace(most))


def _number(expression: sympy.Expr) -> Size:
    return int(expression) if expression.is_Integer else expression


@lru_cache(4096)
def _simple(expression: sympy.Expr) -> sympy.Expr:
    if not expression.args:
        return expression
    args = [_simple(arg) for arg in expression.args]
    if isinstance(expression, FloorDiv):
        return _divided(*args)
    if isinstance(expression, MODULO):
        return _rest(*args)
    made = expression.func(*args)
    return sympy.expand(made) if made.is_Add or made.is_Mul or made.is_Pow else made


def _divided(whole: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
    """Multiples of a number are taken out: (4 a + 3) // 2 is 2 a + 1."""
    if not _splits(whole, divisor):
        return FloorDiv(whole, divisor)
    taken = sum((c // divisor * term for c, term in terms_of(whole)), sympy.S.Zero)
    left = sum((c % divisor * term for c, term in terms_of(whole)), sympy.S.Zero)
    if left.is_Integer:
        return taken
    quotient = FloorDiv(left, divisor)
    if isinstance(quotient, FloorDiv) and quotient.args != (left, divisor):
        quotient = _divided(*quotient.args)  # torch joined two divisions into one
    return sympy.expand(taken + quotient)


def _rest(whole: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
    if not _splits(whole, divisor):
        return PythonMod(whole, divisor)
    left = sum((c % divisor * term for c, term in terms_of(whole)), sympy.S.Zero)
    return left if left.is_Integer else PythonMod(left, divisor)


def _splits(whole: sympy.Expr, divisor: sympy.Expr) -> bool:
    is_positive = bool(divisor.is_Integer) and divisor > 0
    return is_positive and all(c.is_Integer for c, _ in terms_of(whole))


def terms_of(expression: sympy.Expr) -> Iterator[tuple[sympy.Expr, sympy.Expr]]:
    """The terms of a sum, each as a number and the factor that it multiplies."""
    for term in sympy.Add.make_args(expression):
        yield term.as_coeff_Mul()
