"""The patterns that end in `quantize`: operators on integers, and functions of one byte."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, alike, handles_of, traced_shape
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.integers.facts import GREATEST, LEAST, Quantization, operands_of
from rushlight.backends.cpu.operators.images import window_of
from rushlight.backends.cpu.operators.rows import dims_of
from rushlight.backends.cpu.patterns.integers.products import product, why_not_multiplied
from rushlight.backends.cpu.tiles.clusters import is_elementwise
from rushlight.ir.operators import arguments
from rushlight.schema.cpu_engine import QuantizedBinaryKind

aten = torch.ops.aten
_MAX_CALLS = 64  # that become one table
_BINARY = {
    aten.add.Tensor: QuantizedBinaryKind.ADD,
    aten.sub.Tensor: QuantizedBinaryKind.SUBTRACT,
    aten.mul.Tensor: QuantizedBinaryKind.MULTIPLY,
}
# The range of an operand's scale over the result's in which the engine agrees with XNNPACK.
_SUM_SCALES = (2.0**-10, 2.0**8)
_PRODUCT_SCALES = (2.0**-16, 2.0**8)


def fuse_result(r: Rewriter, node: Node) -> Node | None:
    """A call on bytes in place of a quantising call and the calls before it; None if none fits."""
    table = _table(r, node)
    if table is not None:
        return _looked_up(r, node, table)
    clamped = _clamped(node)
    if clamped.node.target in _BINARY:
        return _binary(r, node, clamped)
    if clamped.node.target in (aten.mean.dim, aten.avg_pool2d.default):
        return _average(r, node, clamped)
    # A product with other users, too, is computed once, in float32.
    return product(r, clamped.node, node, clamped.to, clamped.calls) if clamped.is_only else None


# --- functions of one byte ------------------------------------------------------------------------


@dataclass
class _Table:
    """A function of one value.

    Attributes:
        x: the call that dequantises the value.
        nodes: the calls that compute the function.
        bytes: the function's 256 values.
    """

    x: Node
    nodes: list[Node]
    bytes: torch.Tensor


def _table(r: Rewriter, node: Node) -> _Table | None:
    """The table of a function of one dequantised value, if elementwise calls compute it."""
    result: Node = node.args[0]  # type: ignore[assignment]
    to: Quantization = node.args[1]  # type: ignore[assignment]
    order: dict[Node, None] = {}
    leaves: dict[Any, Node] = {}
    stack = [result]
    while stack:
        one = stack.pop()
        if one in order or r.number(one) is not None:
            continue
        if one.target is calls.dequantize:
            leaves[one.args] = one
        elif is_elementwise(one) and alike(traced_shape(one), traced_shape(result)):
            order[one] = None
            stack += one.all_input_nodes
        else:
            return None
        if len(order) > _MAX_CALLS or len(leaves) > 1:
            return None
    if not leaves:
        return None
    [x] = leaves.values()
    if not alike(traced_shape(x), traced_shape(result)):
        return None
    quantization: Quantization = x.args[1]  # type: ignore[assignment]
    numbers = quantization.numbers(torch.arange(LEAST, GREATEST + 1))
    nodes = sorted(order)
    return _Table(x, nodes, to.bytes(_computed(r, nodes, {x.args: numbers}, result)))


def _computed(
    r: Rewriter, nodes: list[Node], known: dict[Any, torch.Tensor], result: Node
) -> torch.Tensor:
    """The results of calls in eager PyTorch."""
    made: dict[Node, torch.Tensor] = {}

    def value(arg: Any) -> Any:
        if not isinstance(arg, Node):
            return arg
        if arg.target is calls.dequantize:
            return known[arg.args]
        return made[arg] if arg in made else torch.tensor(r.number(arg))

    for node in nodes:
        args, kwargs = map(value, node.args), {k: value(v) for k, v in node.kwargs.items()}
        made[node] = node.target(*args, **kwargs)  # type: ignore[operator]
    return value(result)  # type: ignore[no-any-return]


def _looked_up(r: Rewriter, node: Node, table: _Table) -> Node:
    """The call that looks bytes up, or a call before it that can compute the result itself."""
    x: Node = table.x.args[0]  # type: ignore[assignment]
    low, high = int(table.bytes[0]), int(table.bytes[-1])
    bytes_ = torch.arange(LEAST, GREATEST + 1)
    if torch.equal(table.bytes.long(), bytes_):
        return x
    inside = {*table.nodes, table.x, node}
    is_only = all(set(one.users) <= inside for one in (x, table.x, *table.nodes))
    if (
        is_only
        and torch.equal(table.bytes.long(), bytes_.clamp(low, high))
        and _narrow(x, low, high)
    ):
        x.meta["debug_handles"] = handles_of([x, *table.nodes])
        return x
    data = table.bytes
    if is_only and x.target is calls.lookup:
        inner = r.data(x.args[1])
        assert inner is not None
        x, data = x.args[0], data[inner.long()]  # type: ignore[assignment]
    stored = r.constant(bytes(data.tolist()), data)
    return r.call(
        node,
        calls.lookup,
        *(x, stored),
        shape=traced_shape(node),
        dtype=torch.uint8,
        replaced=[table.x, *table.nodes],
    )


def _narrow(node: Node, low: int, high: int) -> bool:
    """Clamp a call's result to these bytes as well, if it can; whether it can."""
    for i, arg in enumerate(node.args):
        if isinstance(arg, Quantization) and node.target in _CLAMPING:
            node.update_arg(i, _within(arg, low, high))
            return True
        if isinstance(arg, calls.Pair):
            node.update_arg(i, replace(arg, to=_within(arg.to, low, high)))
            return True
        if isinstance(arg, calls.Pool) and arg.to is not None:
            node.update_arg(i, replace(arg, to=_within(arg.to, low, high)))
            return True
    return False


_CLAMPING = (calls.product, calls.convolution)


def _within(to: Quantization, low: int, high: int) -> Quantization:
    ends = (min(max(end, low), high) for end in (to.low, to.high))
    return Quantization(to.scale, to.zero_point, *ends)


# --- results of integers --------------------------------------------------------------------------


@dataclass
class _Clamped:
    """A result that is clamped before it is quantised.

    Attributes:
        node: the call that computes it.
        calls: the calls that clamp it.
        to: how it is quantised, with the clamps' limits.
        is_only: whether nothing else uses it.
    """

    node: Node
    calls: list[Node]
    to: Quantization
    is_only: bool

    @property
    def all_calls(self) -> list[Node]:
        return [self.node, *self.calls]


def _clamped(node: Node) -> _Clamped:
    inner: Node = node.args[0]  # type: ignore[assignment]
    to: Quantization = node.args[1]  # type: ignore[assignment]
    is_only = len(inner.users) == 1
    clamping: list[Node] = []
    while True:
        limits = _limits(inner)
        if limits is None:
            return _Clamped(inner, clamping[::-1], to, is_only)
        clamping.append(inner)
        to = _within(to, *(to.byte(end) for end in limits))
        inner = inner.args[0]  # type: ignore[assignment]
        is_only = is_only and len(inner.users) == 1


def _limits(node: Node) -> tuple[float, float] | None:
    """The limits of a call that clamps by numbers; None for any other call."""
    if node.target is aten.relu.default:
        return 0.0, math.inf
    if node.target is aten.hardtanh.default:
        args = arguments(node)
        return float(args["min_val"]), float(args["max_val"])
    if node.target is aten.clamp.default:
        args = arguments(node)
        ends = args["min"], args["max"]
        if any(isinstance(end, Node) for end in ends):
            return None
        low, high = ends
        return -math.inf if low is None else low, math.inf if high is None else high
    return None


def _binary(r: Rewriter, node: Node, clamped: _Clamped) -> Node | None:
    inner, to = clamped.node, clamped.to
    operands: Any = inner.args[:2]
    if any(getattr(x, "target", None) is not calls.dequantize for x in operands):
        return None
    [one, a], [other, b] = (x.args for x in operands)
    target: Any = inner.target
    kind = _BINARY[target]
    factor = inner.kwargs.get("alpha", 1)
    if not isinstance(factor, int | float) or factor == 0:
        return None
    if factor < 0:
        is_sum = kind is QuantizedBinaryKind.ADD
        kind = QuantizedBinaryKind.SUBTRACT if is_sum else QuantizedBinaryKind.ADD
    pair = calls.Pair(kind, a, replace(b, scale=b.scale * abs(factor)), to)
    if why_not_paired(pair) is not None:
        return None
    shape = traced_shape(node)
    return r.call(
        node,
        calls.binary,
        one,
        other,
        pair,
        shape=shape,
        dtype=torch.uint8,
        replaced=clamped.all_calls,
    )


def why_not_paired(pair: calls.Pair) -> str | None:
    """Why the engine does not add or multiply bytes with such scales; None if it does."""
    a, b, scale = pair.a.scale, pair.b.scale, pair.to.scale
    if pair.kind is QuantizedBinaryKind.MULTIPLY:
        low, high = _PRODUCT_SCALES
        fits = low <= a * b / scale < high
    else:
        low, high = _SUM_SCALES
        fits = low <= max(a, b) / scale < high
    return None if fits else f"its scales {a:.3g}, {b:.3g} and {scale:.3g} are too far apart"


def why_not_integer(r: Rewriter, node: Node) -> str:
    """Why a call with dequantised inputs is not computed with integers."""
    if operands_of(node) is not None:
        return why_not_multiplied(r, node)
    to = [user.args[1] for user in node.users if user.target is calls.quantize]
    if not to:
        return "its result is not quantised"
    operands: Any = node.args[:2]
    if node.target in _BINARY:
        if any(getattr(x, "target", None) is not calls.dequantize for x in operands):
            return "one of its operands is not quantised"
        one, other = (x.args[1] for x in operands)
        pair = calls.Pair(_BINARY[node.target], one, other, to[0])  # type: ignore[arg-type]
        return why_not_paired(pair) or "its factor alpha is computed"
    return f"the engine has no {node.target} of integers"


def _average(r: Rewriter, node: Node, clamped: _Clamped) -> Node | None:
    inner, to = clamped.node, clamped.to
    args = arguments(inner)
    x = args["self"]
    if x.target is not calls.dequantize:
        return None
    quantization: Quantization = x.args[1]
    if inner.target is aten.avg_pool2d.default:
        window = calls.Window(*window_of(args))
        pool = calls.Pool(
            window, quantization, to, bool(args["count_include_pad"]), args["divisor_override"] or 0
        )
        return _pooled(r, node, clamped, x.args[0], pool, traced_shape(node))
    sizes = traced_shape(x)
    if args["dtype"] not in (None, torch.float32) or len(sizes) != 4 or dims_of(inner) != [2, 3]:
        return None
    if not all(isinstance(size, int) and size > 0 for size in sizes[2:]):
        return None
    window = calls.Window(sizes[2:], [1, 1], [0] * 4, [1, 1])
    pool = calls.Pool(window, quantization, to)
    new = _pooled(r, node, clamped, x.args[0], pool, [*sizes[:2], 1, 1])
    return new if args["keepdim"] else r.view(node, new, traced_shape(node))


def _pooled(
    r: Rewriter, node: Node, clamped: _Clamped, x: Any, pool: calls.Pool, shape: list[Any]
) -> Node:
    return r.call(
        node, calls.pool, x, pool, shape=shape, dtype=torch.uint8, replaced=clamped.all_calls
    )
