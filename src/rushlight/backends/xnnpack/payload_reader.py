"""Operations and bytes of the nodes of an XNNPACK payload, computed from their sizes.

The runtime fuses some nodes, and reports the time of all of them under the last.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rushlight.backends.xnnpack.constants import XNN_FLAG_TRANSPOSE_WEIGHTS, XNN_INVALID_VALUE_ID
from rushlight.inspect.model import Actual, Work
from rushlight.inspect.payloads import PayloadNode, PayloadReader
from rushlight.schema import xnnpack as fb
from rushlight.schema.codec import Buffer

_MAGIC, _MAGIC_AT = b"XH00", 4
_PLACE, _PLACE_AT = struct.Struct("<II"), 10  # the graph's offset and size
_BITS = {
    **dict.fromkeys((fb.Datatype.FP16, fb.Datatype.BF16), 16),
    **dict.fromkeys((fb.Datatype.QINT8, fb.Datatype.QUINT8, fb.Datatype.QCINT8), 8),
    **dict.fromkeys((fb.Datatype.QDINT8, fb.Datatype.QPINT8), 8),
    **dict.fromkeys((fb.Datatype.QCINT4, fb.Datatype.QBINT4), 4),
}  # other elements have 32
_LAYERS = fb.FullyConnected | fb.Conv2d | fb.DepthwiseConv2d


@dataclass(slots=True)
class _Value:
    """A tensor of the graph.

    Attributes:
        tensor: the tensor in the payload.
        datatype: the dtype of its elements.
        bytes: the size of its elements and of a constant's scales.
    """

    tensor: fb.TensorValue
    datatype: fb.Datatype
    bytes: int


def xnnpack_nodes(payload: Buffer, inputs: Sequence[Actual | None] = ()) -> list[PayloadNode]:
    """The nodes of a payload.

    Args:
        payload: the payload's bytes.
        inputs: the sizes or numbers of the delegate's arguments in a run; None if not known. Unless
            they equal the sizes in the payload, only the kinds of the nodes are known.

    Raises:
        LoadError: `payload` is not a payload of XNNPACK.
    """
    data = memoryview(payload)
    if bytes(data[_MAGIC_AT : _MAGIC_AT + 4]) == _MAGIC and len(data) >= _PLACE_AT + _PLACE.size:
        offset, size = _PLACE.unpack_from(data, _PLACE_AT)
        data = data[offset : offset + size]
    graph = fb.unpack(data)
    values = dict(_values(graph))
    known = all(
        tensor.external_id < len(inputs) and _is(inputs[tensor.external_id], tensor.dims)
        for tensor in (value.tensor for value in values.values())
        if tensor.external_id != XNN_INVALID_VALUE_ID
    )
    nodes = [_node(node.xnode_union, values if known else {}) for node in graph.xnodes]
    _link(nodes, [node.xnode_union for node in graph.xnodes], values)
    return nodes


def _link(
    nodes: Sequence[PayloadNode], operations: Sequence[object], values: Mapping[int, _Value]
) -> None:
    """Set what each node reads from others and gives them."""
    writers: dict[int, int] = {}
    for at, (node, operation) in enumerate(zip(nodes, operations, strict=True)):
        reads, writes = _operands(operation)
        inputs = [writers.get(number, _argument(values.get(number))) for number in reads]
        node.inputs = [number for number in dict.fromkeys(inputs) if number is not None]
        for number in writes:
            writers[number] = at
            value = values.get(number)
            if value is None:
                continue
            dims = ", ".join(map(str, value.tensor.dims or ()))
            node.results.append(f"{value.datatype.name.lower()}[{dims}]")
            if value.tensor.external_id != XNN_INVALID_VALUE_ID:
                node.outputs.append(value.tensor.external_id)


def _argument(value: _Value | None) -> int | None:
    """-1 - i for the delegate's argument i; None for a constant."""
    external = None if value is None else value.tensor.external_id
    return None if external is None or external == XNN_INVALID_VALUE_ID else -1 - external


def _values(graph: fb.Graph) -> Iterator[tuple[int, _Value]]:
    for one in graph.xvalues:
        tensor, scales = one.xvalue_union, 0
        if isinstance(tensor, fb.QuantizedTensorValue):
            scales = _scale_bytes(tensor.quant_params)
            tensor = tensor.tensor_value
        if tensor is None:
            continue
        datatype = fb.Datatype(tensor.dq_datatype or tensor.datatype)
        elements = math.prod(tensor.dims or ()) * _BITS.get(datatype, 32) // 8
        yield tensor.id_out, _Value(tensor, datatype, elements + scales)


def _scale_bytes(params: fb.QuantParams) -> int:
    if isinstance(params, fb.PerChannelQuant):
        return 4 * (params.num_scales or len(params.scale or ()))
    if isinstance(params, fb.PerChannelGroupQuant):
        return 2 * (params.num_scales or len(params.scale_bf16 or ())) or 4 * len(
            params.scale or ()
        )
    return 0


def _is(actual: Actual | None, dims: Sequence[int] | None) -> bool:
    """Whether an argument has these sizes, in any order."""
    if actual is None or isinstance(actual, int):
        return False
    return sorted(actual or (1,)) == sorted(dims or (1,))


def _node(operation: object, values: Mapping[int, _Value]) -> PayloadNode:
    kind = type(operation).__name__
    reads, writes = _operands(operation)
    if not values:  # sizes are unknown, but not which values a node reads and writes
        return PayloadNode(Work(kind), dict.fromkeys(reads, 0), dict.fromkeys(writes, 0))
    try:
        read_bytes, written_bytes = (
            {v: values[v].bytes for v in numbers} for numbers in (reads, writes)
        )
        flops = _flops(operation, [values[v].tensor.dims or [] for v in (*reads, *writes)])
        is_integer = _is_integer(operation, [values[v].datatype for v in (*reads, *writes)])
    except (KeyError, IndexError):
        return PayloadNode(Work(kind))
    moved = sum({**read_bytes, **written_bytes}.values())
    return PayloadNode(Work(kind, flops, moved, is_integer=is_integer), read_bytes, written_bytes)


def _operands(operation: object) -> tuple[list[int], list[int]]:
    """The indices of the values that a node reads, and of those that it writes."""
    count = {"Concatenate2": 2, "Concatenate3": 3, "Concatenate4": 4}.get(
        type(operation).__name__, 5
    )
    reads, writes = [], []
    for name in getattr(operation, "__dataclass_fields__", ()):
        number = getattr(operation, name)
        if not name.endswith("_id") or number == XNN_INVALID_VALUE_ID:
            continue
        if name.startswith("output"):
            writes.append(number)
        elif not (name[:5] == "input" and name[5:-3].isdigit() and int(name[5:-3]) > count):
            reads.append(number)
    return reads, writes


def _is_integer(operation: object, datatypes: Sequence[fb.Datatype]) -> bool:
    """Whether the runtime multiplies integers. A convolution with a dynamically quantised input is
    computed with real numbers."""
    if not isinstance(operation, _LAYERS) or _BITS.get(datatypes[1], 32) > 8:
        return False
    if datatypes[0] is fb.Datatype.QDINT8:
        return isinstance(operation, fb.FullyConnected)
    return datatypes[0] is datatypes[-1] is fb.Datatype.QINT8


def _flops(operation: object, dims: Sequence[Sequence[int]]) -> int | None:
    """Multiplications and additions of products; other operators have no agreed number."""
    out = math.prod(dims[-1])
    if isinstance(operation, fb.FullyConnected):
        return 2 * out * dims[1][0 if operation.flags & XNN_FLAG_TRANSPOSE_WEIGHTS else 1]
    if isinstance(operation, fb.BatchMatrixMultiply):
        return 2 * out * dims[0][-1]
    if isinstance(operation, fb.Conv2d | fb.DepthwiseConv2d | fb.ConvTranspose2d):
        taps = operation.kernel_height * operation.kernel_width
        if isinstance(operation, fb.ConvTranspose2d):
            return 2 * math.prod(dims[0]) * taps * operation.group_output_channels
        return 2 * out * taps * operation.group_input_channels
    return None


READER = PayloadReader(xnnpack_nodes)
