"""Operations and bytes of the nodes of a cpu backend's payload, computed from their sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rushlight.backends.cpu.graph.operations import epilogue_of, program_of, residual_of
from rushlight.inspect.model import Actual, Work
from rushlight.inspect.payloads import PayloadNode, PayloadReader
from rushlight.schema import cpu_engine as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.sizes import ELEMENT_SIZE

_PRODUCTS = fb.Product | fb.BatchProduct | fb.QuantizedProduct | fb.DynamicProduct
_CONVOLUTIONS = fb.Convolution | fb.QuantizedConvolution
_INTEGER = fb.QuantizedProduct | fb.DynamicProduct | fb.QuantizedConvolution

_GATES = {fb.RecurrentCell.LSTM: 4, fb.RecurrentCell.GRU: 3}
_SCALES = 5  # which input of recurrent layers they are

_OPERATORS: Mapping[fb.ExpressionKind, Callable[[int, int], int]] = {
    fb.ExpressionKind.ADD: operator.add,
    fb.ExpressionKind.MULTIPLY: operator.mul,
    fb.ExpressionKind.FLOOR_DIVIDE: operator.floordiv,
    fb.ExpressionKind.MODULO: operator.mod,
    fb.ExpressionKind.MAXIMUM: max,
    fb.ExpressionKind.MINIMUM: min,
}


def engine_nodes(payload: Buffer, inputs: Sequence[Actual | None] = ()) -> list[PayloadNode]:
    """The nodes of a payload, with the work of each.

    Args:
        payload: the payload's bytes.
        inputs: the sizes or numbers of the delegate's inputs in a run; None if not known. Without
            them, nodes with dynamic sizes have no operations and bytes.

    Raises:
        LoadError: `payload` is not a payload of the cpu backend.
    """
    graph = fb.unpack(payload)
    known = _evaluate(graph.expressions or (), inputs)
    for value in graph.values:
        dynamic = value.dynamic_sizes or []
        for i, expression in enumerate(dynamic):
            size = known[expression] if 0 <= expression < len(known) else None
            if size is not None and i < len(value.sizes):
                value.sizes[i], dynamic[i] = size, -1
    return [PayloadNode(_work(graph, node)) for node in graph.nodes]


def _evaluate(
    expressions: Sequence[fb.Expression], inputs: Sequence[Actual | None]
) -> list[int | None]:
    """The value of each expression; None if it is not known."""
    results: list[int | None] = []
    for one in expressions:
        try:
            results.append(_value_of(one, results, inputs))
        except (IndexError, TypeError, ZeroDivisionError):
            results.append(None)
    return results


def _value_of(
    one: fb.Expression, before: Sequence[int | None], inputs: Sequence[Actual | None]
) -> int | None:
    if one.kind is fb.ExpressionKind.CONSTANT:
        return one.a
    if one.kind is fb.ExpressionKind.INPUT_SIZE:
        actual: Any = inputs[one.a]
        return int(actual) if one.b < 0 else int(actual[one.b])
    a, b = before[one.a], before[one.b]
    return None if a is None or b is None else _OPERATORS[one.kind](a, b)


def _work(graph: fb.Graph, node: fb.Node) -> Work:
    operation = node.operation
    epilogue = epilogue_of(operation)
    more = epilogue is not None and (
        epilogue.clamped or epilogue.added or epilogue.program is not None
    )
    more = more or residual_of(operation) is not None
    name = type(operation).__name__ + ("+" if more else "")
    try:
        flops, moved = _flops(graph, node), _bytes(graph, node)
        is_integer = isinstance(operation, _INTEGER) or _has_bytes(node)
        return Work(name, flops, moved, is_integer=is_integer)
    except (IndexError, ValueError):  # the sizes are dynamic, or do not fit the operation
        return Work(name)


def _has_bytes(node: fb.Node) -> bool:
    """Whether recurrent layers have integers for weights, whose scales are an input."""
    return isinstance(node.operation, fb.Recurrent) and len(node.inputs) > _SCALES


def _flops(graph: fb.Graph, node: fb.Node) -> int | None:
    """Multiplications and additions of products; other operators have no agreed number."""
    operation = node.operation
    if isinstance(operation, fb.Recurrent):
        return _recurrent_flops(operation, _sizes(graph, node.inputs[0]))
    if not isinstance(operation, _PRODUCTS | _CONVOLUTIONS | fb.Attention):
        return None
    inputs = [_sizes(graph, number) for number in node.inputs]
    out = _sizes(graph, node.outputs[0])
    if isinstance(operation, _PRODUCTS):
        return 2 * math.prod(out) * inputs[0][-1]
    if isinstance(operation, _CONVOLUTIONS):
        many, few = out, inputs[0]
        if operation.kind is fb.ConvolutionKind.TRANSPOSED:
            many, few = few, many
        return 2 * math.prod(many) * math.prod(operation.kernel) * few[1] // operation.groups
    (batch, heads, queries, width), keys, value_width = inputs[0], inputs[1][2], inputs[2][3]
    pairs = queries * keys
    if operation.causal:  # query i sees keys 0..i
        full = min(queries, keys)
        pairs = full * (full + 1) // 2 + (queries - full) * keys
    return 2 * batch * heads * pairs * (width + value_width)


def _recurrent_flops(operation: fb.Recurrent, sequence: Sequence[int]) -> int:
    length, batch, width = sequence
    units, outputs = operation.units, operation.outputs
    directions = 2 if operation.bidirectional else 1
    gates = units * _GATES.get(operation.cell, 1)
    widths = [width] + [directions * outputs] * (operation.layers - 1)
    terms = sum(gates * (one + outputs) for one in widths)
    if outputs < units:
        terms += operation.layers * units * outputs
    return 2 * length * batch * directions * terms


def _bytes(graph: fb.Graph, node: fb.Node) -> int:
    """Bytes of each value that the node reads or writes, once; a gather reads only some rows."""
    operation = node.operation
    if isinstance(operation, fb.Gather):
        out, indices = graph.values[node.outputs[0]], graph.values[node.inputs[1]]
        return 2 * _value_bytes(out) + _value_bytes(indices)
    numbers = {number for number in (*node.inputs, *node.outputs) if number >= 0}
    epilogue, program = epilogue_of(operation), program_of(operation)
    numbers.update(program.operands if program is not None else ())
    if epilogue is not None and epilogue.added:
        numbers.add(epilogue.residual)
    moved = sum(_value_bytes(graph.values[number]) for number in numbers)
    # The residual may share its memory with the result, and is then read as well as written.
    residual = residual_of(operation)
    return moved if residual is None else moved + _value_bytes(graph.values[residual.value])


def _sizes(graph: fb.Graph, number: int) -> Sequence[int]:
    return _fixed(graph.values[number]).sizes if number >= 0 else ()


def _fixed(value: fb.Value) -> fb.Value:
    """The value, if its sizes are known.

    Raises:
        ValueError: the sizes are dynamic and not known.
    """
    if any(expression >= 0 for expression in value.dynamic_sizes or ()):
        raise ValueError("the sizes vary")
    return value


def _value_bytes(value: fb.Value) -> int:
    """The bytes of its elements; those repeated by a stride of 0 count once."""
    value = _fixed(value)
    counted = [n for n, stride in zip(value.sizes, value.strides, strict=True) if stride != 0]
    return math.prod(counted) * ELEMENT_SIZE[value.dtype]


def _scratch_bytes(payload: Buffer) -> int:
    return int(fb.unpack(payload).scratch_size)


READER = PayloadReader(engine_nodes, _scratch_bytes)
