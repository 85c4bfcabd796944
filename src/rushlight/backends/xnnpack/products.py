"""Products with weights, products of two matrices, and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.constants import XNN_FLAG_TRANSPOSE_WEIGHTS
from rushlight.backends.xnnpack.elementwise import binary
from rushlight.backends.xnnpack.graph import Elements, Stored, Value, identity
from rushlight.backends.xnnpack.norms import norm_after
from rushlight.backends.xnnpack.operator_facts import Operator, arguments
from rushlight.backends.xnnpack.weights import ROWS, Product, integers_of
from rushlight.partition.operators import val_of
from rushlight.schema import xnnpack as fb

aten = torch.ops.aten


def _linear(b: Builder, node: Node) -> Value:
    args = arguments(node)
    if node in b.integers.products:
        return _quantized(b, node, b.integers.products[node], args["bias"])
    weight, bias = b.data(args["weight"]), b.data(args["bias"])
    is_bias_known = args["bias"] is None or bias is not None
    norm = norm_after(b, node) if weight is not None and is_bias_known else None
    if norm is None or weight is None:
        return _product(b, node, args["input"], b.value(args["weight"]), args["bias"])
    filter, shift = (b.constant(t, val_of(node).dtype) for t in norm.folded(weight, bias))
    matrix = Value(filter, tuple(weight.shape), identity(2))
    value = _fully_connected(b, node, b.value(args["input"]), matrix, shift)
    assert value.stored.node is not None
    b.settle(norm.node, [value], value.stored.node)
    return value


def _quantized(b: Builder, node: Node, product: Product, bias: Node | None) -> Value:
    weights, data = product.weights, b.data(product.weights.node)
    assert data is not None
    if product.quantization is None:
        weights = weights.of_each(data.shape[0])
    filter = Value(integers_of(weights, data, 0), tuple(data.shape), identity(2))
    return _fully_connected(
        *(b, node, b.value(product.source), filter, b.bias(product, bias)),
        elements=None if product.quantization else ROWS,
    )


def _mm(b: Builder, node: Node) -> Value:
    args = arguments(node)
    weight = b.value(args["mat2"]).permuted([1, 0])
    if node.target is aten.addmm.default:
        return _product(b, node, args["mat1"], weight, args["self"])
    return _product(b, node, args["self"], weight, None)


def _product(b: Builder, node: Node, source: Node, weight: Value, bias: Node | None) -> Value:
    """The product of `source` and a matrix [out, in], plus a bias that may be computed."""
    data = b.data(bias)
    columns = weight.shape[0]
    is_row = data is not None and data.numel() == columns and data.shape[-1:] == (columns,)
    stored = b.constant(data.reshape(-1)) if data is not None and is_row else None
    value = _fully_connected(b, node, b.value(source), weight, stored)
    if bias is None or stored is not None:
        return value
    return binary(b, node, fb.Add(), [value, b.value(bias)])


def _fully_connected(
    b: Builder,
    node: Node,
    value: Value,
    weight: Value,
    bias: Stored | None,
    elements: Elements | None = None,
) -> Value:
    """The rows of a value, in any order of its other dimensions, times a matrix [out, in].

    Args:
        elements: the elements that the rows are converted to; None for no conversion.
    """
    last = value.rank - 1
    rows = b.in_order(value, [*(d for d in value.order if d != last), last])
    if elements is not None:
        rows = b.converted(rows, elements)
    shape = tuple(val_of(node).shape)
    stored = b.emit_one(
        fb.FullyConnected(flags=XNN_FLAG_TRANSPOSE_WEIGHTS if weight.order == (1, 0) else 0),
        [shape[d] for d in rows.order],
        b.elements(node),
        input1_id=rows.stored,
        filter_id=weight.stored,
        bias_id=bias,
    )
    return Value(stored, shape, rows.order)


def _weight_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if args.get("beta", 1) != 1 or args.get("alpha", 1) != 1:
        return "its beta and alpha are not 1"
    weight = args["weight"] if "weight" in args else args["mat2"]
    if is_constant(weight) or val_of(node).dtype == torch.float32:
        return None
    return "its weights are computed, which XNNPACK takes in float32 only"


def _bmm(b: Builder, node: Node) -> Value:
    operands = [b.in_order(v, identity(v.rank)).stored for v in map(b.value, node.args[:2])]
    one, other = operands
    shape = tuple(val_of(node).shape)
    stored = b.emit_one(
        *(fb.BatchMatrixMultiply(), shape, b.elements(node)),
        input1_id=one,
        input2_id=other,
    )
    return Value(stored, shape, identity(len(shape)))


def _softmax(b: Builder, node: Node) -> Value:
    value = b.value(node.args[0])
    dim = int(node.args[1]) % value.rank  # type: ignore[arg-type]
    rows = b.in_order(value, [*(d for d in value.order if d != dim), dim])
    stored = b.emit_one(fb.Softmax(), rows.stored.dims, rows.stored.elements, input_id=rows.stored)
    return Value(stored, value.shape, rows.order)


def _softmax_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    return "it converts half to float" if node.args[2] else None


OPERATORS = {
    aten.linear.default: Operator(_linear, _weight_why_not),
    aten.addmm.default: Operator(_mm, _weight_why_not),
    aten.mm.default: Operator(_mm, _weight_why_not),
    aten.bmm.default: Operator(_bmm),
    aten._softmax.default: Operator(_softmax, _softmax_why_not),
}
