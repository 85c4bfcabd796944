"""Elementwise operators in the instructions of tile programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from rushlight.schema.cpu_engine import TileOp

aten = torch.ops.aten


@dataclass(frozen=True, eq=False)
class Term:
    """One instruction before registers are assigned.

    Attributes:
        op: what it computes.
        inputs: terms, for `LOAD` none.
        value: an immediate number.
        source: of `LOAD`: which tensor.
    """

    op: TileOp
    inputs: tuple[Term, ...] = ()
    value: float = 0.0
    source: Any = None


LEAVES = (TileOp.LOAD, TileOp.CONSTANT)
"""Terms that are not computed: every program that needs one loads or creates it again."""

Args = Sequence[Any]
"""Arguments of a call: terms for tensors, numbers and the rest as they are."""


def constant(value: float) -> Term:
    """A number in every element."""
    return Term(TileOp.CONSTANT, value=float(value))


def _term(x: Any) -> Term:
    return x if isinstance(x, Term) else constant(x)


def _number(x: Any) -> float | None:
    """The number that every element of an argument is; None if it is no constant."""
    if isinstance(x, bool | int | float):
        return float(x)
    return x.value if isinstance(x, Term) and x.op is TileOp.CONSTANT else None


def _unary(op: TileOp) -> Callable[..., Term]:
    return lambda x: Term(op, (_term(x),))


def _binary(op: TileOp) -> Callable[..., Term]:
    return lambda x, y: Term(op, (_term(x), _term(y)))


def _value(op: TileOp, x: Any, value: float) -> Term:
    return Term(op, (_term(x),), value)


def _add(x: Any, y: Any, alpha: float = 1) -> Term:
    if alpha != 1:
        y = _mul(y, alpha)
    for one, other in ((x, y), (y, x)):
        number = _number(other)
        if number is not None:
            return _value(TileOp.ADD_VALUE, one, number)
    return Term(TileOp.ADD, (_term(x), _term(y)))


def _sub(x: Any, y: Any, alpha: float = 1) -> Term:
    number = _number(y)
    if number is not None:
        return _value(TileOp.ADD_VALUE, x, -number * alpha)
    return Term(TileOp.SUB, (_term(x), _term(y if alpha == 1 else _mul(y, alpha))))


def _mul(x: Any, y: Any) -> Term:
    for one, other in ((x, y), (y, x)):
        number = _number(other)
        if number is not None:
            return _value(TileOp.MUL_VALUE, one, number)
    return Term(TileOp.MUL, (_term(x), _term(y)))


def _clamp(x: Any, low: Any = None, high: Any = None) -> Term:
    term = _term(x)
    if low is not None:
        term = _value(TileOp.MAX_VALUE, term, float(low))
    if high is not None:
        term = _value(TileOp.MIN_VALUE, term, float(high))
    return term


def _pow(x: Any, y: Any) -> Term:
    number = _number(y)
    base = _term(x)
    plain = {
        1.0: lambda: base,
        2.0: lambda: Term(TileOp.SQUARE, (base,)),
        3.0: lambda: Term(TileOp.MUL, (Term(TileOp.SQUARE, (base,)), base)),
        4.0: lambda: Term(TileOp.SQUARE, (Term(TileOp.SQUARE, (base,)),)),
        0.5: lambda: Term(TileOp.SQRT, (base,)),
        -0.5: lambda: Term(TileOp.RSQRT, (base,)),
        -1.0: lambda: Term(TileOp.RECIPROCAL, (base,)),
    }
    if number in plain:
        return plain[number]()
    return Term(TileOp.POW, (base, _term(y)))


def _gelu(x: Any, approximate: str = "none") -> Term:
    return Term(TileOp.GELU if approximate == "none" else TileOp.GELU_TANH, (_term(x),))


def _leaky_relu(x: Any, slope: float = 0.01) -> Term:
    term = _term(x)
    negative = _value(TileOp.MUL_VALUE, _value(TileOp.MIN_VALUE, term, 0.0), slope)
    return Term(TileOp.ADD, (Term(TileOp.RELU, (term,)), negative))


def _elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Term:
    term = _term(x)
    if input_scale == 1:
        result = Term(TileOp.ELU, (term,), float(alpha))
    else:
        negative = Term(TileOp.EXPM1, (_mul(term, input_scale),))
        positive = Term(TileOp.GREATER, (term, constant(0)))
        result = Term(TileOp.WHERE, (positive, term, _mul(negative, alpha)))
    return result if scale == 1 else _mul(result, scale)


def _softplus(x: Any, beta: float = 1, threshold: float = 20) -> Term:
    term = _term(x)
    scaled = term if beta == 1 else _mul(term, beta)
    if threshold == 20:  # the instruction's own
        result = Term(TileOp.SOFTPLUS, (scaled,))
        return result if beta == 1 else _mul(result, 1 / beta)
    curve = _mul(Term(TileOp.LOG1P, (Term(TileOp.EXP, (scaled,)),)), 1 / beta)
    return Term(TileOp.WHERE, (Term(TileOp.GREATER, (scaled, constant(threshold))), term, curve))


TERMS: dict[Any, Callable[..., Term]] = {
    aten.add.Tensor: _add,
    aten.add.Scalar: _add,
    aten.sub.Tensor: _sub,
    aten.sub.Scalar: _sub,
    aten.mul.Tensor: _mul,
    aten.mul.Scalar: _mul,
    aten.div.Tensor: _binary(TileOp.DIV),
    aten.div.Scalar: _binary(TileOp.DIV),
    aten.minimum.default: _binary(TileOp.MIN),
    aten.maximum.default: _binary(TileOp.MAX),
    aten.fmod.Tensor: _binary(TileOp.FMOD),
    aten.fmod.Scalar: _binary(TileOp.FMOD),
    aten.remainder.Tensor: _binary(TileOp.REMAINDER),
    aten.remainder.Scalar: _binary(TileOp.REMAINDER),
    aten.pow.Tensor_Scalar: _pow,
    aten.pow.Tensor_Tensor: _pow,
    aten.eq.Tensor: _binary(TileOp.EQUAL),
    aten.eq.Scalar: _binary(TileOp.EQUAL),
    aten.ne.Tensor: _binary(TileOp.NOT_EQUAL),
    aten.ne.Scalar: _binary(TileOp.NOT_EQUAL),
    aten.lt.Tensor: _binary(TileOp.LESS),
    aten.lt.Scalar: _binary(TileOp.LESS),
    aten.le.Tensor: _binary(TileOp.LESS_EQUAL),
    aten.le.Scalar: _binary(TileOp.LESS_EQUAL),
    aten.gt.Tensor: _binary(TileOp.GREATER),
    aten.gt.Scalar: _binary(TileOp.GREATER),
    aten.ge.Tensor: _binary(TileOp.GREATER_EQUAL),
    aten.ge.Scalar: _binary(TileOp.GREATER_EQUAL),
    aten.logical_and.default: _binary(TileOp.AND),
    aten.logical_or.default: _binary(TileOp.OR),
    aten.logical_not.default: _unary(TileOp.NOT),
    aten.where.self: lambda c, x, y: Term(TileOp.WHERE, (_term(c), _term(x), _term(y))),
    aten.neg.default: _unary(TileOp.NEG),
    aten.abs.default: _unary(TileOp.ABS),
    aten.sqrt.default: _unary(TileOp.SQRT),
    aten.rsqrt.default: _unary(TileOp.RSQRT),
    aten.reciprocal.default: _unary(TileOp.RECIPROCAL),
    aten.exp.default: _unary(TileOp.EXP),
    aten.exp2.default: _unary(TileOp.EXP2),
    aten.expm1.default: _unary(TileOp.EXPM1),
    aten.log.default: _unary(TileOp.LOG),
    aten.log1p.default: _unary(TileOp.LOG1P),
    aten.sin.default: _unary(TileOp.SIN),
    aten.cos.default: _unary(TileOp.COS),
    aten.tanh.default: _unary(TileOp.TANH),
    aten.sigmoid.default: _unary(TileOp.SIGMOID),
    aten.erf.default: _unary(TileOp.ERF),
    aten.gelu.default: _gelu,
    aten.silu.default: _unary(TileOp.SILU),
    aten.mish.default: _unary(TileOp.MISH),
    aten.relu.default: _unary(TileOp.RELU),
    aten.hardswish.default: _unary(TileOp.HARDSWISH),
    aten.hardsigmoid.default: _unary(TileOp.HARDSIGMOID),
    aten.leaky_relu.default: _leaky_relu,
    aten.elu.default: _elu,
    aten.softplus.default: _softplus,
    aten.hardtanh.default: lambda x, low=-1, high=1: _clamp(x, low, high),
    aten.clamp.default: _clamp,
    aten.floor.default: _unary(TileOp.FLOOR),
    aten.ceil.default: _unary(TileOp.CEIL),
    aten.round.default: _unary(TileOp.ROUND),
    aten.trunc.default: _unary(TileOp.TRUNC),
    aten.sign.default: _unary(TileOp.SIGN),
}
"""The instructions of each operator of ATen."""

KEPT_WHOLE = [
    aten.gelu.default,
    aten.silu.default,
    aten.mish.default,
    aten.hardswish.default,
    aten.hardsigmoid.default,
    aten.leaky_relu.default,
    aten.elu.default,
    aten.softplus.default,
]


def term_of(node: Node, terms: Callable[[Node], Any]) -> Term:
    """The instructions of one call.

    Args:
        node: an elementwise call.
        terms: gives the term of each tensor among its arguments.
    """
    args = [terms(arg) if isinstance(arg, Node) else arg for arg in node.args]
    kwargs = {k: terms(v) if isinstance(v, Node) else v for k, v in node.kwargs.items()}
    return TERMS[node.target](*args, **kwargs)
