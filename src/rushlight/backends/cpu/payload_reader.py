"""Operations and bytes of the nodes of a cpu backend's payload, computed from their sizes."""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rushlight.backends.cpu.graph.operations import epilogue_of, program_of, residual_of
from rushlight.inspect.model import Actual, Work
from rushlight.inspect.payloads import PayloadNode, PayloadReader
from rushlight.schema import cpu_engine as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.sizes import ELEMENT_SIZE, dtype_name

_PRODUCTS = fb.Product | fb.BatchProduct | fb.QuantizedProduct | fb.DynamicProduct
_CONVOLUTIONS = fb.Convolution | fb.QuantizedConvolution
_INTEGER = fb.QuantizedProduct | fb.DynamicProduct | fb.QuantizedConvolution

_GATES = {fb.RecurrentCell.LSTM: 4, fb.RecurrentCell.GRU: 3}
_SCALES = 5  # which input of recurrent layers they are
# Instructions of tile programs: their words, and where the first has operands (TileProgram.code).
_WORDS, _STORED, _LOADED = 3, 1, 2
# A damaged payload may claim any number of links between nodes, and any sizes.
_MAX_LINKS, _MAX_SIZE = 1_000_000, 1 << 63

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
    links = list(_links(graph))
    known = _evaluate(graph.expressions or (), inputs)
    for value in graph.values:
        dynamic = value.dynamic_sizes or []
        for i, expression in enumerate(dynamic):
            size = known[expression] if 0 <= expression < len(known) else None
            if size is not None and i < len(value.sizes):
                value.sizes[i], dynamic[i] = size, -1
    return [
        PayloadNode(_work(graph, node), inputs=inputs, results=results, outputs=outputs)
        for node, (inputs, results, outputs) in zip(graph.nodes, links, strict=True)
    ]


def _links(graph: fb.Graph) -> Iterator[tuple[list[int], list[str], list[int]]]:
    """The inputs, results and outputs of each node, see `PayloadNode`. Values are views of memory:
    a node reads from those that wrote the same bytes last."""
    memories: dict[tuple[fb.Place, int], _Memory] = {}
    left = _MAX_LINKS
    for at, node in enumerate(graph.nodes):
        inputs: dict[int, None] = {}
        for value in _variables(graph, _read_by(node)):
            if value.place is fb.Place.INPUT:
                inputs[-1 - value.index] = None
            memory = memories.get(_memory_of(value))
            writers = [] if memory is None else memory.writers(*_range(value))[:left]
            inputs.update(dict.fromkeys(writers))
        left = max(left - len(inputs), 0)
        results, outputs = [], []
        for value in _variables(graph, _written_by(node)):
            results.append(f"{dtype_name(value.dtype)}[{', '.join(map(str, value.sizes))}]")
            if value.place is fb.Place.OUTPUT:
                outputs.append(graph.n_inputs + value.index)
            memories.setdefault(_memory_of(value), _Memory()).write(*_range(value), at)
        yield list(inputs), results, list(dict.fromkeys(outputs))


class _Memory:
    """Which node wrote each byte of a memory last: ranges in order that do not overlap."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._ranges: list[tuple[int, int, int]] = []  # first byte, the one behind the last, node

    def _overlap(self, begin: int, end: int) -> slice:
        first = bisect_right(self._ends, begin)
        last = first
        while last < len(self._ranges) and self._ranges[last][0] < end:
            last += 1
        return slice(first, last)

    def writers(self, begin: int, end: int) -> list[int]:
        """The nodes that wrote the bytes from `begin` to `end`."""
        return [node for _, _, node in self._ranges[self._overlap(begin, end)]]

    def write(self, begin: int, end: int, node: int) -> None:
        """Record that a node writes the bytes from `begin` to `end`."""
        where = self._overlap(begin, end)
        old = self._ranges[where]
        before = [(low, begin, by) for low, _, by in old[:1] if low < begin]
        after = [(end, high, by) for _, high, by in old[-1:] if high > end]
        new = [*before, (begin, end, node), *after]
        self._ranges[where] = new
        self._ends[where] = [high for _, high, _ in new]


def _read_by(node: fb.Node) -> list[int]:
    """The values that a node reads. What an epilogue reads of the node's own result is not among
    them."""
    values, program = [*node.inputs, *_residual(node)], program_of(node.operation)
    epilogue = epilogue_of(node.operation)
    if epilogue is not None and epilogue.added:
        values.append(epilogue.residual)
    if program is not None:
        values += _named_by(program, fb.TileOp.LOAD, _LOADED)
    return [value for value in values if value not in node.outputs]


def _written_by(node: fb.Node) -> list[int]:
    """The values that a node writes, each once."""
    program = program_of(node.operation)
    stored = () if program is None else _named_by(program, fb.TileOp.STORE, _STORED)
    return list(dict.fromkeys([*node.outputs, *stored]))


def _named_by(program: fb.TileProgram, op: fb.TileOp, at: int) -> list[int]:
    """The operands that instructions of one kind name in the byte `at` of their first words."""
    first = [word.to_bytes(4, "little") for word in program.code[::_WORDS]]
    indices = [word[at] for word in first if word[0] == op]
    return [program.operands[index] for index in indices if index < len(program.operands)]


def _operands(node: fb.Node) -> list[int]:
    """The numbers of a node's values, but for its results and the residual."""
    numbers = [number for number in node.inputs if number >= 0]
    epilogue, program = epilogue_of(node.operation), program_of(node.operation)
    numbers += program.operands if program is not None else ()
    if epilogue is not None and epilogue.added:
        numbers.append(epilogue.residual)
    return numbers


def _residual(node: fb.Node) -> list[int]:
    residual = residual_of(node.operation)
    return [] if residual is None else [residual.value]


def _variables(graph: fb.Graph, numbers: Iterable[int]) -> list[fb.Value]:
    """The values with these numbers that are no constants; what the payload lacks is left out."""
    values = [graph.values[number] for number in numbers if 0 <= number < len(graph.values)]
    return [value for value in values if value.place is not fb.Place.CONSTANT]


def _memory_of(value: fb.Value) -> tuple[fb.Place, int]:
    return value.place, 0 if value.place is fb.Place.SCRATCH else value.index


def _range(value: fb.Value) -> tuple[int, int]:
    """The bytes of a value, from the first to the one behind the last."""
    pairs = zip(value.sizes, value.strides, strict=False)
    last = sum(max(size - 1, 0) * max(stride, 0) for size, stride in pairs)
    return value.offset, value.offset + (last + 1) * ELEMENT_SIZE.get(value.dtype, 1)


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
    result = None if a is None or b is None else _OPERATORS[one.kind](a, b)
    return result if result is None or abs(result) < _MAX_SIZE else None


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
    # The sizes are dynamic, or do not fit the operation.
    except (ArithmeticError, LookupError, ValueError):
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
    # The residual may share its memory with the result, and is then read as well as written.
    numbers = [*{number for number in (*_operands(node), *node.outputs) if number >= 0}]
    return sum(_value_bytes(graph.values[number]) for number in [*numbers, *_residual(node)])


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
