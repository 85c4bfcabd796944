"""The engine's nodes for calls on bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder, merged
from rushlight.backends.cpu.graph.operations import WithResidual
from rushlight.backends.cpu.graph.sizes import at_most_one, same, shape_of
from rushlight.backends.cpu.graph.values import CHANNELS_LAST, EngineNode, View
from rushlight.backends.cpu.integers import calls, pack
from rushlight.backends.cpu.integers.facts import Quantization, Weights, group_size_of
from rushlight.backends.cpu.operators.images import zeros_around
from rushlight.backends.cpu.operators.rows import is_without_gaps
from rushlight.ir.custom_ops import executorch
from rushlight.ir.custom_ops.fake_quantize import fake_quantize_groups
from rushlight.ir.operators import arguments
from rushlight.partition.operators import Operator, val_of
from rushlight.schema import cpu_engine as fb

executorch.define()
embedding_byte = torch.ops.quantized_decomposed.embedding_byte.default


def _requantize(to: Quantization | None) -> fb.Requantize | None:
    return None if to is None else fb.Requantize(to.zero_point, to.low, to.high)


# --- between dtypes -------------------------------------------------------------------------------


def _convert(b: Builder, node: Node) -> View:
    """The same numbers in another dtype, in the same order in memory."""
    args: Any = node.args
    x = b.value(args[0])
    quantization = args[1] if len(args) > 1 else Quantization(1.0, 0)
    if any(user.op == "output" for user in node.users):
        x = b.dense(x)  # results of a part are row-major
    if not is_without_gaps(x):
        x = b.in_order(x, x.meta.order())
    out = b.new(x.shape, x.meta.order(), val_of(node).dtype)
    b.emit(fb.Convert(quantization.scale, quantization.zero_point), *_alike(x, out))
    if node.target is not calls.quantize or (quantization.low, quantization.high) == (0, 255):
        return out
    table = torch.arange(256).clamp(quantization.low, quantization.high).to(torch.uint8)
    return _looked_up(
        b, out, b.constant((quantization.low, quantization.high, "clamp"), lambda: table)
    )


def _alike(x: View, out: View) -> tuple[list[View], list[View]]:
    """Two values of equal sizes with as few dimensions as possible."""
    metas = merged([x.meta, out.meta], out.meta.order())
    one, other = (v.moved(m) for v, m in zip((x, out), metas, strict=True))
    return [one], [other]


def _lookup(b: Builder, node: Node) -> View:
    x, table = (b.value(arg) for arg in node.args)  # type: ignore[arg-type]
    return _looked_up(b, x, table)


def _looked_up(b: Builder, x: View, table: View) -> View:
    out = b.new(x.shape, x.meta.order(), torch.uint8)
    inputs, outputs = _alike(x, out)
    b.emit(fb.Lookup(), [*inputs, table], outputs)
    return out


def _binary(b: Builder, node: Node) -> View:
    args: Any = node.args
    one, other, pair = args
    shape = shape_of(node)
    views = [b.value(arg) for arg in (one, other)]
    full = next((v for v in views if v.meta.dim() == len(shape) and v.shape == shape), None)
    out = b.new(shape, full.meta.order() if full is not None else None, torch.uint8)
    metas = [*(v.meta.expand(shape) for v in views), out.meta]
    lying = merged(metas, out.meta.order())
    inputs = [v.moved(m) for v, m in zip((*views, out), lying, strict=True)]
    b.emit(_operation_of(pair), inputs[:2], inputs[2:])
    return out


def _operation_of(pair: calls.Pair) -> fb.QuantizedBinary:
    a, b, to = pair.a, pair.b, pair.to
    return fb.QuantizedBinary(
        pair.kind,
        *(a.scale, a.zero_point, b.scale, b.zero_point, to.scale),
        fb.Requantize(to.zero_point, to.low, to.high),
    )


# --- products -------------------------------------------------------------------------------------


def _constants(b: Builder, node: Node, sums: pack.Sums) -> list[View]:
    """The start values of accumulators and the multipliers of results."""
    return [
        b.constant((node, name), lambda data=data: pack.columns(data))  # type: ignore[misc]
        for name, data in (("start", sums.start), ("multipliers", sums.multipliers))
    ]


def _product(b: Builder, node: Node) -> View:
    args: Any = node.args
    x, _, sums, to = args
    rows = b.rows(b.value(x))
    out = b.new(shape_of(node), dtype=val_of(node).dtype)
    return _rows_by(b, node, rows, sums, to, out, _residual(b, node, is_image=False))


def _rows_by(
    b: Builder, node: Node, rows: View, sums: Any, to: Any, out: View, residual: View | None
) -> View:
    """A product of rows with weights [columns, ...], where ... is as large as a row."""
    matrix = sums.weights.reshape(len(sums.weights), -1).t()
    weights = b.constant((node, "weights"), lambda: pack.panels(matrix))
    inputs = [rows, weights, *_constants(b, node, sums)]
    engine_node = b.emit(fb.QuantizedProduct(_requantize(to)), inputs, [b.rows(out)])
    _add(engine_node, node, residual)
    return out


def _residual(b: Builder, node: Node, *, is_image: bool) -> View | None:
    """The residual that a product or convolution adds to its result, as [rows, columns]."""
    if "residual" not in node.kwargs:
        return None
    view: View = b.value(node.kwargs["residual"])  # type: ignore[arg-type]
    if not is_image:
        return b.rows(view)
    rows = b.as_rows(view, is_image)
    if at_most_one(rows.shape[1]) or same(rows.meta.strides[1], 1):
        return rows
    return b.as_rows(b.in_order(view, CHANNELS_LAST), is_image)


def _add(engine_node: EngineNode, node: Node, residual: View | None) -> None:
    """Let a node add a residual to its result, if there is one."""
    if residual is not None:
        pair: Any = node.kwargs["pair"]
        assert isinstance(engine_node.operation, WithResidual)
        engine_node.operation.residual = fb.QuantizedResidual(sum=_operation_of(pair))
        engine_node.operands = [residual]


def _convolution(b: Builder, node: Node) -> View:
    args: Any = node.args
    x, _, sums, to, window, groups, outside = args
    image, edges = zeros_around(b, x, outside)
    out = b.new(shape_of(node), CHANNELS_LAST, val_of(node).dtype)
    residual = _residual(b, node, is_image=True)
    padding = [p + e for p, e in zip(window.padding, edges, strict=True)]
    kernel, stride, dilation = window.kernel, window.stride, window.dilation
    weight = sums.weights
    if len(kernel) > weight.dim() - 2:
        weight = weight.unsqueeze(2)
    if kernel == stride == [1, 1] and not any(padding) and groups == 1:
        image = b.in_order(image, CHANNELS_LAST)
        one, other = (v.moved(v.meta.permute(CHANNELS_LAST)) for v in (image, out))
        _rows_by(b, node, b.rows(one), sums, to, other, residual)
        return out
    kind = fb.ConvolutionKind.DENSE
    if groups == image.shape[1] == weight.shape[0] and groups > 1:
        kind = fb.ConvolutionKind.DEPTHWISE
    # A dense image is read in the order that it has, such as the few channels of a first layer.
    if kind is not fb.ConvolutionKind.DENSE or not is_without_gaps(image):
        image = b.in_order(image, CHANNELS_LAST)
    weights = b.constant((node, "weights"), lambda: pack.convolution(weight, groups, kind))
    operation = fb.QuantizedConvolution(
        kind, kernel, stride, padding, dilation, groups, outside, _requantize(to)
    )
    engine_node = b.emit(operation, [image, weights, *_constants(b, node, sums)], [out])
    _add(engine_node, node, residual)
    return out


def _quantize_rows(b: Builder, node: Node) -> list[View]:
    """Bytes [rows, depth], and the scale and zero point of each row: [rows, 2]."""
    x = b.rows(b.value(node.args[0]))  # type: ignore[arg-type]
    out = b.new(x.shape, dtype=torch.uint8)
    parameters = b.new([x.shape[0], 2])
    b.emit(fb.QuantizeRows(), [x], [out, parameters])
    return [out, parameters]


def _quantize_groups(b: Builder, node: Node) -> list[View]:
    """Int8 [rows, depth], and of each group its scale and the sum of its integers."""
    args = arguments(node)
    x, size = b.rows(b.value(args["x"])), args["group_size"]
    groups = [x.shape[0], x.shape[1] // size]
    outs = [b.new(x.shape, dtype=torch.int8), b.new(groups), b.new(groups, dtype=torch.int32)]
    b.emit(fb.QuantizeRows(size), [x], outs)
    return outs


def _weights(b: Builder, node: Node, weights: Weights) -> tuple[View, View]:
    """Panels of weights, and their scales."""
    packed = pack.half_panels if weights.is_half else pack.panels
    matrix = weights.data.reshape(len(weights.data), -1).t()
    panels = b.constant((weights.node, weights.columns, packed), lambda: packed(matrix))
    return panels, b.constant((node, "scales"), lambda: pack.scales_of(weights))


def _dynamic_product(b: Builder, node: Node) -> View:
    args: Any = node.args
    rows, _, weights, bias = args
    weighted: list[Any] = list(_weights(b, node, weights))
    row_group_size = group_size_of(rows) or 0
    if not row_group_size:
        weighted.append(b.constant((node, "shares"), lambda: pack.shares_of(weights)))
    out = b.new(shape_of(node))
    bits = 4 if weights.is_half else 8
    operation = fb.DynamicProduct(bits, weights.group_size, row_group_size=row_group_size)
    inputs: Sequence[Any] = [*b.value(rows), *weighted, b.bias(bias)]
    b.emit(operation, inputs, [b.rows(out)])
    return out


def _weight_only_product(b: Builder, node: Node) -> View:
    args: Any = node.args
    x, _, weights, bias = args
    panels, stored = _weights(b, node, weights)
    out = b.new(shape_of(node))
    b.emit(fb.Product(), [b.rows(b.value(x)), panels, b.bias(bias), stored], [b.rows(out)])
    return out


def _embedding(b: Builder, node: Node) -> View:
    """Rows of a table of integers, which a product with the same weights shares."""
    args = arguments(node)
    data, scales = b.data(args["weight"]), b.data(args["weight_scales"])
    assert data is not None and scales is not None
    limits = args["weight_quant_min"], args["weight_quant_max"]
    if limits != (-8, 7) or not -8 <= int(data.min()) <= int(data.max()) <= 7:
        limits = -128, 127  # the operator does not hold integers to the limits that it is given
    weights = Weights(args["weight"], 0, data, scales.reshape(len(data), -1), *limits)
    panels, stored = _weights(b, node, weights)
    out = b.new(shape_of(node))
    b.emit(fb.Gather(len(data)), [panels, b.dense(b.value(args["indices"])), stored], [out])
    return out


def _embedding_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if not is_constant(args["weight"]) or not is_constant(args["weight_scales"]):
        return "its table is computed: the engine prepares weights ahead of time"
    if args["weight_zero_points"] is not None:
        return "its table has zero points"
    dtypes = [val_of(args[name]).dtype for name in ("weight", "weight_scales", "indices")]
    if dtypes != [torch.int8, torch.float32, torch.int64] or val_of(node).dtype != torch.float32:
        return "the engine's tables are int8 with float32 scales, their indices int64"
    width, scales = val_of(args["weight"]).shape[1], val_of(args["weight_scales"])
    groups = scales.shape[1] if scales.dim() > 1 else 1
    if width % groups:
        return f"its rows of {width} integers have {groups} groups of unequal size"
    return None


# --- images ---------------------------------------------------------------------------------------


def _pool(b: Builder, node: Node) -> View:
    args: Any = node.args
    x, pool = args
    image = b.in_order(b.value(x), CHANNELS_LAST)
    out = b.new(shape_of(node), CHANNELS_LAST, torch.uint8)
    window = pool.window
    operation = fb.QuantizedPooling(
        pool.to is not None, window.kernel, window.stride, window.padding, window.dilation
    )
    if pool.to is not None and pool.source is not None:
        operation.count_padding, operation.divisor = pool.count_padding, pool.divisor
        operation.in_zero_point = pool.source.zero_point
        operation.multiplier = pool.source.scale / pool.to.scale
        operation.requantize = _requantize(pool.to)
    b.emit(operation, [image], [out])
    return out


OPERATORS: dict[Any, Operator[Builder]] = {
    calls.quantize: Operator(_convert),
    calls.dequantize: Operator(_convert),
    calls.flip: Operator(_convert),
    calls.lookup: Operator(_lookup),
    calls.binary: Operator(_binary),
    calls.product: Operator(_product),
    calls.convolution: Operator(_convolution),
    calls.quantize_rows: Operator(_quantize_rows),
    fake_quantize_groups: Operator(_quantize_groups),
    calls.dynamic_product: Operator(_dynamic_product),
    calls.weight_only_product: Operator(_weight_only_product),
    calls.pool: Operator(_pool),
    embedding_byte: Operator(_embedding, _embedding_why_not),
}
"""How the calls that patterns make are translated."""
