"""The patterns of products and convolutions of bytes, and the parameters of their calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, traced_shape
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.integers.facts import (
    Quantization,
    Weights,
    constant_of,
    group_size_of,
    is_transposed,
    operands_of,
    rows_of,
    weights_of,
)
from rushlight.backends.cpu.integers.pack import depth_of, sums
from rushlight.backends.cpu.operators.images import for_each
from rushlight.ir.custom_ops.fake_quantize import SIZES
from rushlight.ir.operators import arguments
from rushlight.schema.cpu_engine import Limit

aten = torch.ops.aten


def product(
    r: Rewriter,
    node: Any,
    before: Node,
    to: Quantization | None,
    clamping: Sequence[Node] = (),
) -> Node | None:
    """A call on bytes in place of a product or convolution, if its operands are quantised.

    Args:
        r: the graph.
        node: the product or convolution.
        before: the call before which it is inserted: `node`, or the one that quantises its result.
        to: how the bytes of the result stand for numbers; None for float32.
        clamping: the calls between `node` and `before`, which become part of it.
    """
    operands = None if is_transposed(node) else _operands(r, node)
    if operands is None:
        return None
    x, weights, bias = operands
    source: Any = x.args
    if x.target is not calls.dequantize or weights.group_size or why_not_summed(weights):
        return None
    quantization: Quantization = source[1]
    shape, replaced = traced_shape(node), [node, *clamping]
    settings = sums(weights, bias, quantization, to, node.name)
    args = [source[0], weights.node, settings, to]
    dtype = torch.float32 if to is None else torch.uint8
    if node.target is not aten.convolution.default:
        return r.call(before, calls.product, *args, shape=shape, dtype=dtype, replaced=replaced)
    conv = arguments(node)
    window, is_line = _window(conv, weights)
    more = (window, conv["groups"], quantization.zero_point)
    if not is_line:
        return r.call(
            before, calls.convolution, *args, *more, shape=shape, dtype=dtype, replaced=replaced
        )
    args[0] = r.view(before, source[0], _as_image(traced_shape(x)))
    image = r.call(
        before,
        calls.convolution,
        *args,
        *more,
        shape=_as_image(shape),
        dtype=dtype,
        replaced=replaced,
    )
    return r.view(before, image, shape)


def _as_image(shape: list[Any]) -> list[Any]:
    """Sizes of a line as those of an image of one row."""
    return [*shape[:2], 1, shape[2]]


def _window(conv: dict[str, Any], weights: Weights) -> tuple[calls.Window, bool]:
    """The window of a convolution, and whether it is a one-dimensional one."""
    is_line = weights.data.dim() == 3
    one, none = ([1], [0]) if is_line else ([], [])
    kernel = [*one, *weights.data.shape[2:]]
    rank = weights.data.dim() - 2
    padding = [*none, *for_each(conv["padding"], rank)]
    stride, dilation = ([*one, *for_each(conv[name], rank)] for name in ("stride", "dilation"))
    return calls.Window(kernel, stride, [*padding, *padding], dilation), is_line


def why_not_multiplied(r: Rewriter, node: Node) -> str:
    """Why a product of bytes is computed in float32."""
    operands = operands_of(node)
    assert operands is not None
    if is_transposed(node):
        return "the engine has no transposed convolution of integers"
    weights = weights_of(operands.weight, r.data, columns=operands.columns)
    if weights is None:
        return "its weights are not int8 with a scale for each column and no zero points"
    if weights.group_size:
        return "its weights have scales for groups, but its input is quantised with known scales"
    return why_not_summed(weights) or "its bias is computed: the engine prepares it at export"


def why_not_summed(weights: Weights) -> str | None:
    """Why sums of products with weights may be more than the engine's integers hold."""
    depth, most = depth_of(weights), int(Limit.QUANTIZED_TERMS)
    if depth <= most:
        return None
    return f"sums of {depth} terms do not fit 32 bits; the engine adds up to {most}"


def dynamic_product(r: Rewriter, node: Node) -> Node | None:
    """A call in place of a product whose rows are quantised at run time; None for other calls."""
    operands = _operands(r, node)
    if operands is None or node.target is aten.convolution.default:
        return None
    quantized, weights, bias = operands
    row_group_size = group_size_of(quantized)
    x = rows_of(quantized)
    if row_group_size is not None and why_not_grouped(weights, row_group_size) is None:
        rows = quantized
    elif x is not None and why_not_dynamic(weights) is None:
        rows = r.call(node, calls.quantize_rows, x, shape=traced_shape(x), dtype=torch.uint8)
    else:
        return None
    stored = None if bias is None else r.constant((node, "bias"), bias)
    args = (rows, weights.node, weights, stored)
    return r.call(node, calls.dynamic_product, *args, shape=traced_shape(node))


def weight_only_product(r: Rewriter, node: Node) -> Node | None:
    """A call in place of a product of float32 with quantised weights; None for other calls."""
    operands = _operands(r, node)
    if operands is None or node.target is aten.convolution.default:
        return None
    x, weights, bias = operands
    if rows_of(x) is not None or group_size_of(x) or why_not_weight_only(weights) is not None:
        return None
    stored = None if bias is None else r.constant((node, "bias"), bias)
    args = (x, weights.node, weights, stored)
    return r.call(node, calls.weight_only_product, *args, shape=traced_shape(node))


def why_not_weight_only(weights: Weights) -> str | None:
    """Why float32 is not multiplied by such weights."""
    size = weights.group_size
    if size % 8:
        return f"its weights have groups of {size}; the engine's are multiples of 8 inputs"
    return None


def why_not_dynamic(weights: Weights) -> str | None:
    """Why rows that are quantised at run time are not multiplied by such weights."""
    reason = why_not_summed(weights)
    size = weights.group_size
    if reason is None and size and not weights.is_half:
        reason = "its weights of 8 bits have scales for groups of inputs; the engine has those of 4"
    if reason is None and size % 8:
        reason = f"its weights have groups of {size}; the engine's are multiples of 8 inputs"
    return reason


def why_not_grouped(weights: Weights, row_group_size: int) -> str | None:
    """Why rows that are rounded in groups are not multiplied by such weights."""
    size = weights.group_size or depth_of(weights)
    if row_group_size in SIZES and size % row_group_size == 0:
        return None
    return (
        f"its rows have groups of {row_group_size} and its weights of {size}; the engine's rows "
        f"have groups of {' or '.join(map(str, SIZES))}, which divide the weights'"
    )


def _operands(r: Rewriter, node: Any) -> tuple[Node, Weights, torch.Tensor | None] | None:
    operands = operands_of(node) if isinstance(node, Node) else None
    if operands is None or not isinstance(operands.x, Node):
        return None
    weights = weights_of(operands.weight, r.data, columns=operands.columns)
    if weights is None:
        return None
    if operands.bias is None:
        return operands.x, weights, None
    bias = constant_of(operands.bias, r.data)
    return None if bias is None or bias.dim() != 1 else (operands.x, weights, bias)
