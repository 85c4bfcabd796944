"""Operators on elements: functions of one and of two tensors, clamps and slopes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.graph import (
    NHWC,
    Order,
    Stored,
    Value,
    identity,
    is_one,
    keys_of,
)
from rushlight.backends.xnnpack.operator_facts import Arithmetic, Operator, arguments
from rushlight.partition.operators import val_of
from rushlight.schema import xnnpack as fb

aten = torch.ops.aten

COMPUTES = Arithmetic.COMPUTES
Make = Callable[[dict[str, Any]], fb.NodeKind]


def unary(b: Builder, node: Node, operation: fb.NodeKind) -> Value:
    """One node on the call's first argument; the result has the argument's order."""
    value = b.value(node.args[0])
    stored = b.emit_one(operation, value.stored.dims, b.elements(node), input_id=value.stored)
    return Value(stored, value.shape, value.order)


def binary(b: Builder, node: Node, operation: fb.NodeKind, operands: Sequence[Value]) -> Value:
    """One node on two values, which are broadcast to the shape of the call's first result."""
    results = node.meta["val"]
    val = results if isinstance(results, torch.Tensor) else results[0]
    shape = tuple(val.shape)
    order = _common_order(b, operands, shape)
    one, other = (_fitted(b, value, order) for value in operands)
    dims = [shape[d] for d in order]
    stored = b.emit_one(operation, dims, b.elements(node), input1_id=one, input2_id=other)
    return Value(stored, shape, order)


def _common_order(b: Builder, operands: Sequence[Value], shape: Sequence[Any]) -> Order:
    """The order of the result for which the fewest operands must be moved."""
    rank = len(shape)
    full = [v for v in operands if v.rank == rank and v.stored.data is None]
    same = [v for v in full if keys_of(v.shape) == keys_of(shape)]
    orders = dict.fromkeys(v.order for v in same or full)
    if not orders:
        return identity(rank)
    # Among equally good orders, prefer the one of images, which neighbouring convolutions need.
    return min(orders, key=lambda o: (sum(not b.has_order(v, o) for v in full), o != NHWC))


def _fitted(b: Builder, value: Value, order: Order) -> Stored:
    """A value in the order in which it is broadcast to a result."""
    if value.rank < len(order):
        if all(is_one(size) for size in value.shape) or order == identity(len(order)):
            return b.in_order(value, identity(value.rank)).stored
        value = b.viewed(value, [1] * (len(order) - value.rank) + list(value.shape))
    return b.in_order(value, order).stored


def clamp(b: Builder, node: Node, low: float, high: float) -> Value:
    """The call's first argument, clamped by the node that computes it or by an additional node."""
    source: Any = node.args[0]
    payload_node = b.limited(source)
    if payload_node is not None and payload_node.outputs["output_id"].elements == b.elements(node):
        payload_node.limit(low, high)
        b.join(node, payload_node)
        return b.value(source)
    value = b.value(source)
    stored = b.emit_one(
        fb.Clamp(), value.stored.dims, b.elements(node), (low, high), input_id=value.stored
    )
    return Value(stored, value.shape, value.order)


def _limits(node: Node) -> tuple[float, float]:
    args = arguments(node)
    if node.target is aten.relu.default:
        return 0.0, math.inf
    low, high = (args.get(a, args.get(b)) for a, b in (("min", "min_val"), ("max", "max_val")))
    return (-math.inf if low is None else float(low), math.inf if high is None else float(high))


def _clamp_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    low, high = _limits(node)
    return None if low < high else f"its limits are {low} and {high}: XNNPACK wants a lower first"


def _function(make: Callable[[], fb.NodeKind], integers: Arithmetic | None = COMPUTES) -> Operator:
    return Operator(lambda b, node: unary(b, node, make()), integers=integers)


def _of_two(make: Callable[[], fb.NodeKind], integers: Arithmetic | None = None) -> Operator:
    def translate(b: Builder, node: Node) -> Value:
        one, other = (b.value(n) for n in node.args[:2])
        alpha = node.kwargs.get("alpha", 1)
        if alpha != 1:
            factor = b.number(float(alpha), val_of(node).dtype)  # type: ignore[arg-type]
            scaled = b.emit_one(
                *(fb.Multiply(), other.stored.dims, other.stored.elements),
                input1_id=other.stored,
                input2_id=factor,
            )
            other = Value(scaled, other.shape, other.order)
        return binary(b, node, make(), [one, other])

    def arithmetic(node: Node) -> Arithmetic | None:
        return integers if node.kwargs.get("alpha", 1) == 1 else None

    return Operator(translate, _two_why_not, integers=arithmetic)


def _two_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    for operand in node.args[:2]:
        if not isinstance(operand, Node):
            return "it takes a number in place of a tensor"
    return None


def _reciprocal(b: Builder, node: Node) -> Value:
    value = b.value(node.args[0])
    one = b.number(1.0, val_of(node).dtype)
    stored = b.emit_one(
        fb.Div(), value.stored.dims, value.stored.elements, input1_id=one, input2_id=value.stored
    )
    return Value(stored, value.shape, value.order)


def _power(b: Builder, node: Node) -> Value:
    square = unary(b, node, fb.Square())
    return (
        square if node.args[1] == 2 else binary(b, node, fb.Multiply(), [square, _first(b, node)])
    )


def _first(b: Builder, node: Node) -> Value:
    return b.value(node.args[0])


def _power_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    power = node.args[1]
    return None if power in (2, 3) else f"XNNPACK has no power of {power}, only of 2 (and so of 3)"


def _gelu_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if arguments(node)["approximate"] == "none":
        return None
    return "XNNPACK's gelu is the exact one, and approximate='tanh' is up to 5e-4 beside it"


def _elu(b: Builder, node: Node) -> Value:
    return unary(b, node, fb.ELU(float(arguments(node)["alpha"])))


def _elu_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if args["scale"] != 1 or args["input_scale"] != 1:
        return "XNNPACK's elu has no scales"
    return None if args["alpha"] > 0 else f"its alpha is {args['alpha']}, and XNNPACK's is above 0"


def _leaky_relu(b: Builder, node: Node) -> Value:
    return unary(b, node, fb.LeakyReLU(float(arguments(node)["negative_slope"])))


OPERATORS: dict[Any, Operator] = {
    aten.abs.default: _function(fb.Abs),
    aten.ceil.default: _function(fb.Ceiling),
    aten.cos.default: _function(fb.Cos),
    aten.exp.default: _function(fb.Exp),
    aten.floor.default: _function(fb.Floor),
    aten.hardswish.default: _function(fb.Hardswish),
    aten.log.default: _function(fb.Log, None),
    aten.neg.default: _function(fb.Negate),
    aten.rsqrt.default: _function(fb.ReciprocalSquareRoot, None),
    aten.sigmoid.default: _function(fb.Sigmoid),
    aten.sin.default: _function(fb.Sin),
    aten.sqrt.default: _function(fb.SquareRoot, None),
    aten.tanh.default: _function(fb.Tanh),
    aten.gelu.default: Operator(
        lambda b, n: unary(b, n, fb.Gelu()), _gelu_why_not, integers=COMPUTES
    ),
    aten.elu.default: Operator(_elu, _elu_why_not, integers=COMPUTES),
    aten.leaky_relu.default: Operator(_leaky_relu),
    aten.pow.Tensor_Scalar: Operator(
        *(_power, _power_why_not), integers=lambda n: COMPUTES if n.args[1] == 2 else None
    ),
    aten.reciprocal.default: Operator(_reciprocal),
    aten.add.Tensor: _of_two(fb.Add, COMPUTES),
    aten.sub.Tensor: _of_two(fb.Subtract, COMPUTES),
    aten.mul.Tensor: _of_two(fb.Multiply, COMPUTES),
    aten.div.Tensor: _of_two(fb.Div),
    aten.maximum.default: _of_two(fb.Maximum),
    aten.minimum.default: _of_two(fb.Minimum),
    **{
        target: Operator(
            lambda b, n: clamp(b, n, *_limits(n)), _clamp_why_not, integers=Arithmetic.LIMITS
        )
        for target in (aten.relu.default, aten.hardtanh.default, aten.clamp.default)
    },
}

KEPT_WHOLE = [aten.hardswish.default]
"""Operators that XNNPACK has one node for and that torch would decompose into several."""
