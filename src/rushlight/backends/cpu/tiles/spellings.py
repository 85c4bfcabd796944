"""Activations that models spell out: sums and products of a tensor and a function of it.

However the factors are put (`0.5 * x * (1 + erf(x / 2 ** 0.5))`, `x * (0.5 + 0.5 * erf(...))`),
expanding them gives the same polynomial, whose unknowns are the function and the parts of x. The
activation is recognised by that polynomial, and computed by one instruction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from rushlight.backends.cpu.tiles.terms import Term
from rushlight.schema.cpu_engine import TileOp

Polynomial = dict[tuple[int, ...], float]
"""{ascending numbers of unknowns: factor}: `3 * x * x + 1` is `{(0, 0): 3, (): 1}`."""

_MAX_PRODUCTS = 8
_MAX_UNKNOWNS = 5  # in a product
# The relative difference of a constant written with the digits of float32 or of float64.
_CLOSE = 1e-6


class Spellings:
    """Recognises activations among the terms of one program, one term at a time, inputs first."""

    def __init__(self) -> None:
        self._polynomials: dict[int, Polynomial] = {}
        self._unknowns: list[Term] = []
        # The terms by the products of their polynomials; kept, since their ids are keys.
        self._terms: dict[frozenset[tuple[int, ...]], list[Term]] = {}

    def recognized(self, term: Term) -> Term:
        """The instruction that computes what `term` does, or `term`; its inputs come before it."""
        polynomial = self._expanded(term)
        activation = self._activation(polynomial)
        if activation is not None:
            term = activation
            polynomial = None
        self._keep(term, polynomial)
        return term

    def _keep(self, term: Term, polynomial: Polynomial | None) -> None:
        known = self._polynomials[id(term)] = polynomial or self._unknown(term)
        self._terms.setdefault(frozenset(known), []).append(term)

    def _unknown(self, term: Term) -> Polynomial:
        self._unknowns.append(term)
        return {(len(self._unknowns) - 1,): 1.0}

    def _of(self, term: Term) -> Polynomial:
        if id(term) not in self._polynomials:  # a load, or an inner term of one ATen operator
            self._keep(term, self._expanded(term))
        return self._polynomials[id(term)]

    def _expanded(self, term: Term) -> Polynomial | None:
        """The polynomial of a term; None if the term is an unknown itself."""
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
        x = None if power is None else self._term_of(_scaled(power, -1.0))
        return None if x is None else self._unknown(Term(TileOp.SIGMOID, (x,)))

    def _input(self, unknown: int, op: TileOp) -> Polynomial | None:
        """The argument of the function `op`, if an unknown is a call of it."""
        term = self._unknowns[unknown]
        return self._of(term.inputs[0]) if term.op is op else None

    def _term_of(self, polynomial: Polynomial) -> Term | None:
        """A term that is known to have this value."""
        for term in self._terms.get(frozenset(polynomial), ()):
            if _close(self._polynomials[id(term)], polynomial):
                return term
        return None

    def _activation(self, polynomial: Polynomial | None) -> Term | None:
        """An activation of x, if the polynomial is one in x and a function of x."""
        for function in sorted({unknown for key in polynomial or () for unknown in key}):
            for activation, spelled in _ACTIVATIONS.items():
                inner = self._input(function, spelled.function)
                if inner is not None and spelled.outer is not None:
                    inner = self._inside(inner, spelled.outer)
                if inner is None:
                    continue
                x = spelled.x_of(*_split(polynomial or {}, function))
                term = self._term_of(x) if x and _close(inner, spelled.inner(x)) else None
                if term is not None:
                    return Term(activation, (term,))
        return None

    def _inside(self, polynomial: Polynomial, op: TileOp) -> Polynomial | None:
        """The argument of the function `op`, if a value is just a call of it."""
        (key,) = polynomial if len(polynomial) == 1 else [()]
        is_bare = len(key) == 1 and polynomial[key] == 1.0
        return self._input(key[0], op) if is_bare else None


class _Spelled(NamedTuple):
    """How an activation of x is written with a function of x.

    Attributes:
        function: the function.
        x_of: x, from the activation's polynomial a + b * function; None if it is another one.
        inner: the function's argument, from x.
        outer: if not None, the argument is this function of `inner`.
    """

    function: TileOp
    x_of: Callable[[Polynomial, Polynomial], Polynomial | None]
    inner: Callable[[Polynomial], Polynomial | None]
    outer: TileOp | None = None


def _of_half(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """x / 2 + x / 2 * function."""
    return _scaled(b, 2.0) if _close(a, b) else None


def _of_product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """x * function."""
    return None if a else b


def _of_tanh(x: Polynomial) -> Polynomial | None:
    square = _product(x, x)
    cube = None if square is None else _product(square, x)
    return None if cube is None else _sum(_scaled(x, _ROOT), cube, _ROOT * 0.044715)


_ROOT = math.sqrt(2 / math.pi)

_ACTIVATIONS = {
    TileOp.GELU: _Spelled(TileOp.ERF, _of_half, lambda x: _scaled(x, math.sqrt(0.5))),
    TileOp.GELU_TANH: _Spelled(TileOp.TANH, _of_half, _of_tanh),
    TileOp.SILU: _Spelled(TileOp.SIGMOID, _of_product, lambda x: x),
    TileOp.MISH: _Spelled(TileOp.TANH, _of_product, lambda x: x, outer=TileOp.SOFTPLUS),
}


def _key(*unknowns: int) -> tuple[int, ...]:
    return tuple(sorted(unknowns))


def _close(one: Polynomial, other: Polynomial | None) -> bool:
    return (
        other is not None
        and one.keys() == other.keys()
        and all(math.isclose(factor, other[key], rel_tol=_CLOSE) for key, factor in one.items())
    )


def _split(polynomial: Polynomial, unknown: int) -> tuple[Polynomial, Polynomial]:
    """a and b of a + b * unknown; the unknown stands at most once in each product."""
    a = {key: factor for key, factor in polynomial.items() if unknown not in key}
    b: Polynomial = {}
    for key, factor in polynomial.items():
        if unknown in key:
            at = key.index(unknown)
            b[key[:at] + key[at + 1 :]] = factor
    return a, b


def _scaled(polynomial: Polynomial, factor: float) -> Polynomial:
    return {key: value * factor for key, value in polynomial.items()}


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
    small = len(kept) <= _MAX_PRODUCTS and all(len(key) <= _MAX_UNKNOWNS for key in kept)
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
