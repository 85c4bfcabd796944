"""Activations that models spell out: sums and products of a tensor and a function of it.

However the factors are put (`0.5 * x * (1 + erf(x / 2 ** 0.5))`, `x * (0.5 + 0.5 * erf(...))`),
the same polynomial comes out, in the tensor and the function as its unknowns; by it the activation
is known, and computed by one instruction.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight.backends.cpu.tiles import Term, TileOp

Polynomial = dict[tuple[int, ...], float]
"""Factors by unknowns, whose numbers ascend: `3 * x * x + 1` is `{(0, 0): 3, (): 1}`."""

_MOST_PRODUCTS = 8
_MOST_UNKNOWNS = 5  # in a product
# Of a constant that was written with as many digits as float32 has, or with float64's.
_CLOSE = 1e-6


class Spellings:
    """Recognises activations among the terms of one program, which are given as they are made."""

    def __init__(self) -> None:
        self._polynomials: dict[int, Polynomial] = {}
        self._unknowns: list[Term] = []
        self._terms: list[Term] = []  # kept, since their ids are keys

    def recognized(self, term: Term) -> Term:
        """The instruction that computes what `term` does, or `term`; its inputs come before it."""
        polynomial = self._expanded(term)
        found = self._activation(polynomial)
        if found is not None:
            term = found
            polynomial = None
        self._terms.append(term)
        self._polynomials[id(term)] = polynomial if polynomial else self._unknown(term)
        return term

    def _unknown(self, term: Term) -> Polynomial:
        self._unknowns.append(term)
        return {(len(self._unknowns) - 1,): 1.0}

    def _of(self, term: Term) -> Polynomial:
        if id(term) not in self._polynomials:  # a load, or what one operator of ATen consists of
            self._terms.append(term)
            self._polynomials[id(term)] = self._expanded(term) or self._unknown(term)
        return self._polynomials[id(term)]

    def _expanded(self, term: Term) -> Polynomial | None:
        """The polynomial, None if it is an unknown itself."""
        inputs = [self._of(one) for one in term.inputs]
        if term.op is TileOp.CONSTANT:
            return {(): term.value} if term.value else None
        if term.op is TileOp.DIV or term.op is TileOp.RECIPROCAL:
            inverse = self._inverse(inputs[-1])
            if inverse is None or term.op is TileOp.RECIPROCAL:
                return inverse
            return _product(inputs[0], inverse)
        expand = _EXPANSIONS.get(term.op)
        return None if expand is None else expand(term.value, inputs)

    def _inverse(self, polynomial: Polynomial) -> Polynomial | None:
        """One over a number, or over 1 + e^-x, a sigmoid."""
        if list(polynomial) == [()]:
            return {(): 1 / polynomial[()]}
        last = max(polynomial, key=len)
        if len(last) != 1 or polynomial != {(): 1.0, last: 1.0}:
            return None
        power = self._input(last[0], TileOp.EXP)
        for x in [] if power is None else power:
            if len(x) == 1 and power == {x: -1.0}:
                return self._unknown(Term(TileOp.SIGMOID, (self._unknowns[x[0]],)))
        return None

    def _input(self, unknown: int, op: TileOp) -> Polynomial | None:
        """What this unknown is the function `op` of."""
        term = self._unknowns[unknown]
        return self._of(term.inputs[0]) if term.op is op else None

    def _activation(self, polynomial: Polynomial | None) -> Term | None:
        if polynomial is None or not 1 <= len(polynomial) <= 2:
            return None
        pair = max(polynomial, key=len)
        if len(pair) != 2 or pair[0] == pair[1]:
            return None
        for x, function in (pair, pair[::-1]):
            for activation, spelled in _ACTIVATIONS.items():
                outer = spelled.outer(x, function)
                if _close(polynomial, outer) and self._is(function, spelled, x):
                    return Term(activation, (self._unknowns[x],))
        return None

    def _is(self, unknown: int, spelled: _Spelled, x: int) -> bool:
        inner = self._input(unknown, spelled.function)
        if inner is None:
            return False
        if spelled.of is None:
            return _close(inner, spelled.inner(x))
        (key,) = inner if len(inner) == 1 else [()]
        if len(key) != 1 or inner[key] != 1.0:
            return False
        innermost = self._input(key[0], spelled.of)
        return innermost is not None and _close(innermost, spelled.inner(x))


class _Spelled:
    """What an activation of x is in a function of x.

    Args:
        function: which one.
        outer: the activation's polynomial in the unknowns x and function.
        inner: the function's argument as a polynomial in x.
        of: if given, the argument is this function of `inner`.
    """

    def __init__(
        self,
        function: TileOp,
        outer: Callable[[int, int], Polynomial],
        inner: Callable[[int], Polynomial],
        of: TileOp | None = None,
    ) -> None:
        self.function = function
        self.outer = outer
        self.inner = inner
        self.of = of


def _half(x: int, function: int) -> Polynomial:
    return {(x,): 0.5, _key(x, function): 0.5}


def _times(x: int, function: int) -> Polynomial:
    return {_key(x, function): 1.0}


_ROOT = math.sqrt(2 / math.pi)

_ACTIVATIONS = {
    TileOp.GELU: _Spelled(TileOp.ERF, _half, lambda x: {(x,): math.sqrt(0.5)}),
    TileOp.GELU_TANH: _Spelled(
        TileOp.TANH, _half, lambda x: {(x,): _ROOT, (x, x, x): _ROOT * 0.044715}
    ),
    TileOp.SILU: _Spelled(TileOp.SIGMOID, _times, lambda x: {(x,): 1.0}),
    TileOp.MISH: _Spelled(TileOp.TANH, _times, lambda x: {(x,): 1.0}, of=TileOp.SOFTPLUS),
}


def _key(*unknowns: int) -> tuple[int, ...]:
    return tuple(sorted(unknowns))


def _close(one: Polynomial, other: Polynomial) -> bool:
    return one.keys() == other.keys() and all(
        math.isclose(factor, other[key], rel_tol=_CLOSE) for key, factor in one.items()
    )


def _sum(one: Polynomial, other: Polynomial, factor: float = 1.0) -> Polynomial | None:
    total = dict(one)
    for key, value in other.items():
        total[key] = total.get(key, 0.0) + factor * value
    return _within_limits(total)


def _product(one: Polynomial, other: Polynomial) -> Polynomial | None:
    total: Polynomial = {}
    for a, x in one.items():
        for b, y in other.items():
            key = _key(*a, *b)
            total[key] = total.get(key, 0.0) + x * y
    return _within_limits(total)


def _within_limits(polynomial: Polynomial) -> Polynomial | None:
    kept = {key: factor for key, factor in polynomial.items() if factor != 0.0}
    small = len(kept) <= _MOST_PRODUCTS and all(len(key) <= _MOST_UNKNOWNS for key in kept)
    return kept if kept and small else None


_EXPANSIONS: dict[TileOp, Callable[[float, list[Polynomial]], Polynomial | None]] = {
    TileOp.ADD: lambda _, x: _sum(x[0], x[1]),
    TileOp.SUB: lambda _, x: _sum(x[0], x[1], -1.0),
    TileOp.MUL: lambda _, x: _product(x[0], x[1]),
    TileOp.NEG: lambda _, x: _product(x[0], {(): -1.0}),
    TileOp.SQUARE: lambda _, x: _product(x[0], x[0]),
    TileOp.ADD_VALUE: lambda value, x: _sum(x[0], {(): value}),
    TileOp.MUL_VALUE: lambda value, x: _product(x[0], {(): value}),
}
