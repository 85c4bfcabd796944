"""Convolutions, pools and resizing of images, which XNNPACK computes in NHWC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.constants import XNN_FLAG_ALIGN_CORNERS, XNN_FLAG_KEEP_DIMS
from rushlight.backends.xnnpack.graph import Stored, Value, dynamic_sizes
from rushlight.backends.xnnpack.norms import norm_after
from rushlight.backends.xnnpack.operator_facts import (
    COMPUTED,
    SEVERAL_DYNAMIC,
    Arithmetic,
    Operator,
    arguments,
    dims_of,
    is_depthwise_conv,
    pair,
    used_results,
)
from rushlight.backends.xnnpack.weights import IMAGES, Product, integers_of
from rushlight.ir.quantized_values import affine_of, dequantizes, quantizes
from rushlight.partition.operators import beyond_window, needs_constants, val_of
from rushlight.schema import xnnpack as fb
from rushlight.schema.cpu_engine import Limit

aten = torch.ops.aten

_SIDES = ("padding_left", "padding_right", "padding_top", "padding_bottom")

_SLIDING = ("kernel_size", "stride", "padding", "dilation")

_Convolution = fb.Conv2d | fb.DepthwiseConv2d | fb.ConvTranspose2d
_Pooling = fb.MaxPooling2d | fb.AvgPooling2d


# --- convolutions -------------------------------------------------------------------------------


def _conv_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    source = val_of(args["input"])
    if source.dim() not in (3, 4):
        return "XNNPACK's convolutions have one or two dimensions"
    if source.dim() == 3 and max(map(dynamic_sizes, (source.shape, val_of(node).shape))) > 1:
        return SEVERAL_DYNAMIC
    sliding = (*args["stride"], *args["padding"], *args["dilation"])
    return beyond_window(Limit.WINDOW, *val_of(args["weight"]).shape[2:], *sliding) or (
        needs_constants("weight", "bias", because=COMPUTED)(node, is_constant)
    )


def _convolution(b: Builder, node: Node) -> Value:
    args = arguments(node)
    product = b.integers.products.get(node)
    weight = b.data(args["weight"] if product is None else product.weights.node)
    bias = None if product is not None else b.data(args["bias"])
    assert weight is not None
    groups, transposed = args["groups"], args["transposed"]
    if transposed:
        weight = _by_outputs(weight, groups)
    if weight.dim() == 3:
        weight = weight.unsqueeze(-1)
    norm = None if product is not None else norm_after(b, node)
    if norm is not None:
        weight, bias = norm.folded(weight, bias)
    image, edges = _without_pad(b, args["input"] if product is None else product.source)
    source = b.images(image)
    shape = tuple(val_of(node).shape)
    operation = _operation(args, weight)
    for side, zeros in edges.items():
        setattr(operation, side, getattr(operation, side) + zeros)
    if product is None:
        filter = _filter(b, weight, isinstance(operation, fb.DepthwiseConv2d))
        shift = None if bias is None else b.constant(bias, torch.float32)
    else:
        filter = _quantized_filter(product, weight, operation)
        shift = b.bias(product, args["bias"])
        if product.quantization is None:
            source = b.stored_as(source, IMAGES)
    stored = b.emit_one(
        *(operation, _image_dims(shape), b.elements(node)),
        input1_id=source,
        filter_id=filter,
        bias_id=shift,
    )
    value = b.from_images(stored, shape)
    if norm is not None:
        assert stored.node is not None
        b.settle(norm.node, [value], stored.node)
    return value


def _without_pad(b: Builder, node: Node) -> tuple[Value, dict[str, int]]:
    """The image before a padding with zeros, and the zeros on each side.

    The padding is left out if only convolutions read its result. The image may be quantised after
    it, because every scale has an integer for zero.
    """
    quantization, pad, readers = None, node, list(node.users)
    if dequantizes(node) and quantizes(source := node.all_input_nodes[0]):
        quantization, pad = affine_of(source), source.all_input_nodes[0]
        readers += [u for one in (source, pad) for u in one.users if u not in (source, node)]
    known = pad.target is aten.constant_pad_nd.default and val_of(pad).dim() == 4
    is_read = any(u.target is not aten.convolution.default or u.args[6] for u in readers)
    args = arguments(pad) if known and not is_read else {}
    if args.get("value", 1) != 0 or len(args["pad"]) > 4:
        return b.value(node), {}
    most = max(max(arguments(u)["padding"]) for u in node.users)
    if beyond_window(Limit.WINDOW, max(args["pad"], default=0) + most) is not None:
        return b.value(node), {}
    image = (
        b.value(args["self"]) if quantization is None else b.quantized(args["self"], quantization)
    )
    return image, dict(zip(_SIDES, args["pad"], strict=False))


def _by_outputs(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """Weights [in, out / groups, …] of a transposed convolution as [out, in / groups, …]."""
    grouped = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    return grouped.transpose(1, 2).reshape(-1, weight.shape[0] // groups, *weight.shape[2:])


def _filter(b: Builder, weight: torch.Tensor, is_depthwise: bool) -> Stored:
    """Weights [out, in / groups, height, width] in XNNPACK's order, always in float32."""
    order = (1, 2, 3, 0) if is_depthwise else (0, 2, 3, 1)
    return b.constant(weight.permute(order).contiguous(), torch.float32)


def _quantized_filter(product: Product, weight: torch.Tensor, operation: _Convolution) -> Stored:
    weights = product.weights
    if product.quantization is None:
        weights = weights.of_each(weight.shape[0])
    if isinstance(operation, fb.DepthwiseConv2d):
        return integers_of(weights, weight.permute(1, 2, 3, 0), 3)
    return integers_of(weights, weight.permute(0, 2, 3, 1), 0)


def _operation(args: dict[str, Any], weight: torch.Tensor) -> _Convolution:
    outputs, inputs, *kernel = weight.shape
    groups, transposed = args["groups"], args["transposed"]
    sides = val_of(args["input"]).dim() - 2
    top, left = _of_sides(args["padding"], sides, 0)
    stride, dilation = (_of_sides(args[n], sides, 1) for n in ("stride", "dilation"))
    adjustment = _of_sides(args["output_padding"], sides, 0) if transposed else [0, 0]
    is_depthwise = is_depthwise_conv(weight.shape, groups)
    kind: type[_Convolution] = fb.DepthwiseConv2d if is_depthwise else fb.Conv2d
    return (fb.ConvTranspose2d if transposed else kind)(
        padding_top=top,
        padding_bottom=top,
        padding_left=left,
        padding_right=left,
        kernel_height=kernel[0],
        kernel_width=kernel[1],
        subsampling_height=stride[0],
        subsampling_width=stride[1],
        dilation_height=dilation[0],
        dilation_width=dilation[1],
        group_input_channels=inputs,
        group_output_channels=outputs // groups,
        groups=groups,
        adjustment_height=adjustment[0],
        adjustment_width=adjustment[1],
    )


def _of_sides(numbers: Sequence[int], sides: int, none: int) -> list[int]:
    """A number for the height and one for the width; a single number is used for both.

    Args:
        numbers: one number, or one for each side.
        sides: 2 for images; 1 for inputs [N, C, L], which have no width.
        none: the number for a missing width.
    """
    listed = list(numbers) * (sides if len(numbers) == 1 else 1)
    return listed + [none] * (2 - sides)


def _image_dims(shape: Sequence[Any]) -> list[Any]:
    """The stored sizes of a value [N, C, H, W] or [N, C, L]."""
    batch, channels, *rest = shape
    return [batch, *rest, *[1] * (2 - len(rest)), channels]


# --- pools --------------------------------------------------------------------------------------


def _pool(
    b: Builder, node: Node, operation: _Pooling, source: Stored, shape: Sequence[Any]
) -> Value:
    stored = b.emit_one(operation, _image_dims(shape), b.elements(node), input_id=source)
    return b.from_images(stored, shape)


def _window(args: dict[str, Any]) -> dict[str, int]:
    kernel = pair(args["kernel_size"])
    stride = pair(args["stride"] or kernel)
    top, left = pair(args["padding"])
    return {
        "padding_top": top,
        "padding_right": left,
        "padding_bottom": top,
        "padding_left": left,
        "pooling_height": kernel[0],
        "pooling_width": kernel[1],
        "stride_height": stride[0],
        "stride_width": stride[1],
    }


def _pool_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    source = val_of(args["self"])
    if source.dim() != 4:
        return "XNNPACK pools images [N, C, H, W]"
    if pair(args["kernel_size"]) == [1, 1]:
        return "its window is one element, for which XNNPACK has no pool"
    numbers = (pair(args[name]) for name in _SLIDING if args.get(name))
    return beyond_window(Limit.WINDOW, *(n for both in numbers for n in both))


def _max_pool_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if used_results(node) - {0}:
        return "its indices are used, and XNNPACK counts them in another way"
    if args["ceil_mode"] and dynamic_sizes(val_of(args["self"]).shape[2:]):
        return "its ceil_mode is True and its input has dynamic sizes, for which XNNPACK cannot pad"
    return _pool_why_not(node, is_constant)


def _max_pool(b: Builder, node: Node) -> list[Value]:
    args = arguments(node)
    window, dilation = _window(args), pair(args["dilation"])
    value, shape = b.value(args["self"]), tuple(val_of(node)[0].shape)
    if args["ceil_mode"]:
        sides = (("height", "top", "bottom"), ("width", "left", "right"))
        for d, (side, first, last) in enumerate(sides):
            stride, kernel = window[f"stride_{side}"], window[f"pooling_{side}"]
            reach = (shape[2 + d] - 1) * stride + dilation[d] * (kernel - 1) + 1
            padded = value.shape[2 + d] + window[f"padding_{first}"]
            window[f"padding_{last}"] = max(int(reach - padded), 0)
    height, width = dilation
    operation = fb.MaxPooling2d(
        **window, dilation_height=height, dilation_width=width, flags=XNN_FLAG_KEEP_DIMS
    )
    return [_pool(b, node, operation, b.images(value), shape)]


def _avg_pool_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if args["ceil_mode"]:
        return "its ceil_mode is True, and XNNPACK's average pools round down"
    if args["divisor_override"] is not None:
        return "XNNPACK has no divisor_override"
    return _pool_why_not(node, is_constant)


def _avg_pool(b: Builder, node: Node) -> Value:
    """An average pool. XNNPACK does not count padding, so where it counts, the input is padded by a
    node of its own."""
    args = arguments(node)
    window = _window(args)
    source = b.images(b.value(args["self"]))
    top, left = window["padding_top"], window["padding_left"]
    if args["count_include_pad"] and (top or left):
        paddings = [0, top, left, 0]
        batch, height, width, channels = source.dims
        source = b.emit_one(
            fb.StaticConstantPad(paddings, paddings),
            [batch, height + 2 * top, width + 2 * left, channels],
            source.elements,
            input_id=source,
        )
        window |= {f"padding_{side}": 0 for side in ("top", "right", "bottom", "left")}
    operation = fb.AvgPooling2d(**window, flags=XNN_FLAG_KEEP_DIMS)
    return _pool(b, node, operation, source, tuple(val_of(node).shape))


def _adaptive_kernel(node: Node) -> list[int] | None:
    """The window of an adaptive pool with fixed sizes, if all its windows are equal; else None."""
    sizes, results = val_of(node.args[0]).shape[-2:], val_of(node).shape[-2:]
    if dynamic_sizes([*sizes, *results]) or any(a % b for a, b in zip(sizes, results, strict=True)):
        return None
    return [a // b for a, b in zip(sizes, results, strict=True)]


def _adaptive_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if val_of(node.args[0]).dim() != 4:
        return "XNNPACK pools images [N, C, H, W]"
    kernel = _adaptive_kernel(node)
    if kernel is None:
        return "its windows differ in size or depend on a dynamic size, and XNNPACK has one window"
    return (
        "its window is one element, for which XNNPACK has no pool"
        if kernel == [1, 1]
        else beyond_window(Limit.WINDOW, *kernel)
    )


def _adaptive(b: Builder, node: Node) -> Value:
    height, width = _adaptive_kernel(node) or (0, 0)
    return _reduce(b, node, fb.AvgPooling2d, b.value(node.args[0]), [height, width])


def _reduce(
    b: Builder, node: Node, kind: type[_Pooling], value: Value, kernel: Sequence[int]
) -> Value:
    """A pool whose windows are side by side."""
    batch, channels, height, width = value.shape
    sides = {
        "pooling_height": kernel[0],
        "pooling_width": kernel[1],
        "stride_height": kernel[0],
        "stride_width": kernel[1],
    }
    dilation = {"dilation_height": 1, "dilation_width": 1} if kind is fb.MaxPooling2d else {}
    shape = (batch, channels, height // kernel[0], width // kernel[1])
    return _pool(b, node, kind(**sides, **dilation), b.images(value), shape)


# --- reductions ---------------------------------------------------------------------------------


def _reduced_kernel(node: Node) -> list[int] | None:
    """The window that covers the dimensions that a call reduces; None if one is dynamic."""
    value = val_of(node.args[0])
    dims = dims_of(node.args[1], value)  # type: ignore[arg-type]
    sizes = [value.shape[d] if d in dims else 1 for d in (2, 3)]
    return None if dynamic_sizes(sizes) else [int(s) for s in sizes]


def _reduction_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    value = val_of(node.args[0])
    dims = dims_of(node.args[1], value)  # type: ignore[arg-type]
    if value.dim() != 4 or not set(dims) <= {2, 3}:
        return "XNNPACK reduces height and width of images [N, C, H, W]"
    kernel = _reduced_kernel(node)
    if kernel is None:
        return "it reduces a dynamic dimension, and XNNPACK's windows are fixed"
    if kernel == [1, 1]:
        return "its window is one element, for which XNNPACK has no pool"
    return beyond_window(Limit.WINDOW, *kernel) or _dropped_why_not(node)


def _dropped_why_not(node: Node) -> str | None:
    results = node.meta["val"]
    result = results if isinstance(results, torch.Tensor) else results[0]
    if result.dim() < val_of(node.args[0]).dim() and dynamic_sizes(result.shape) > 1:
        return SEVERAL_DYNAMIC
    return None


def _amax(b: Builder, node: Node) -> Value:
    kernel = _reduced_kernel(node) or []
    value = _reduce(b, node, fb.MaxPooling2d, b.value(node.args[0]), kernel)
    return b.viewed(value, tuple(val_of(node).shape))


def _max_dim_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if 1 in used_results(node) and val_of(node.args[0]).dtype != torch.float32:
        return "its indices are used, which XNNPACK computes for float32 only"
    return _reduction_why_not(node, is_constant)


def _max_dim(b: Builder, node: Node) -> list[Value]:
    """The maxima along a dimension, and their indices if they are used.

    The payload stores the indices, which are int32, with the datatype float32; the runtime converts
    them to int64 in results.
    """
    height, width = _reduced_kernel(node) or (0, 0)
    value = b.value(node.args[0])
    shape = tuple(val_of(node)[0].shape)
    if 1 not in used_results(node):
        return [b.viewed(_reduce(b, node, fb.MaxPooling2d, value, [height, width]), shape)]
    source = b.images(value)
    batch, rows, columns, channels = source.dims
    dims = [batch, rows // height, columns // width, channels]
    outputs = {f"output_{n}_id": Stored(dims, source.datatype) for n in ("value", "index")}
    operation = fb.ArgMaxPooling2d(pooling_height=height, pooling_width=width)
    b.emit(operation, outputs, input_id=source)
    kept = (batch, channels, *dims[1:3])
    return [b.viewed(b.from_images(stored, kept), shape) for stored in outputs.values()]


def _mean_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    value = val_of(node.args[0])
    dims = dims_of(node.args[1], value)  # type: ignore[arg-type]
    if node.kwargs.get("dtype") not in (None, value.dtype):
        return "it averages in another dtype than its input has"
    if value.dim() == 3 and dims == [2]:
        return SEVERAL_DYNAMIC if dynamic_sizes(value.shape) > 1 else None
    if value.dim() == 4 and dims == [2, 3]:
        return _dropped_why_not(node)
    return _reduction_why_not(node, is_constant)


def _mean(b: Builder, node: Node) -> Value:
    value, shape = b.value(node.args[0]), tuple(val_of(node).shape)
    dims = dims_of(node.args[1], val_of(node.args[0]))  # type: ignore[arg-type]
    if len(dims) == 1 and value.rank == 4:
        kernel = _reduced_kernel(node) or []
        return b.viewed(_reduce(b, node, fb.AvgPooling2d, value, kernel), shape)
    source = b.images(value)
    batch, _, _, channels = source.dims
    stored = b.emit_one(
        fb.GlobalAvgPooling2d(flags=XNN_FLAG_KEEP_DIMS),
        [batch, 1, 1, channels],
        b.elements(node),
        input_id=source,
    )
    return b.viewed(b.from_images(stored, (batch, channels, *[1] * (value.rank - 2))), shape)


def _mean_arithmetic(node: Node) -> Arithmetic | None:
    """XNNPACK averages whole images in integers too, but windows only in real numbers."""
    value = val_of(node.args[0])
    dims = dims_of(node.args[1], value)  # type: ignore[arg-type]
    return None if value.dim() == 4 and len(dims) == 1 else Arithmetic.COMPUTES


# --- resizing -----------------------------------------------------------------------------------


def _resize(b: Builder, node: Node) -> Value:
    source = b.images(b.value(node.args[0]))
    shape = tuple(val_of(node).shape)
    flags = XNN_FLAG_ALIGN_CORNERS if arguments(node)["align_corners"] else 0
    operation = fb.StaticResizeBilinear2D(shape[2], shape[3], flags=flags)
    stored = b.emit_one(operation, _image_dims(shape), b.elements(node), input_id=source)
    return b.from_images(stored, shape)


def _resize_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    before, after = val_of(node.args[0]).shape[2:], val_of(node).shape[2:]
    if dynamic_sizes(after):
        return "its result has dynamic sizes, and XNNPACK resizes to fixed ones"
    scales = args.get("scale_factors") or [args.get("scales_h"), args.get("scales_w")]
    for size, result, scale in zip(before, after, scales, strict=True):
        if scale is not None and size * scale != result:
            return "its scale differs from the ratio of the sizes, with which XNNPACK computes"
    return None


OPERATORS = {
    aten.convolution.default: Operator(_convolution, _conv_why_not),
    aten.max_pool2d_with_indices.default: Operator(
        _max_pool, _max_pool_why_not, integers=Arithmetic.KEEPS
    ),
    aten.avg_pool2d.default: Operator(_avg_pool, _avg_pool_why_not),
    aten._adaptive_avg_pool2d.default: Operator(_adaptive, _adaptive_why_not),
    aten.amax.default: Operator(_amax, _reduction_why_not, integers=Arithmetic.KEEPS),
    aten.max.dim: Operator(_max_dim, _max_dim_why_not),
    aten.mean.dim: Operator(_mean, _mean_why_not, integers=_mean_arithmetic),
    aten.upsample_bilinear2d.default: Operator(
        _resize, _resize_why_not, integers=Arithmetic.COMPUTES_ALIKE
    ),
    aten.upsample_bilinear2d.vec: Operator(
        _resize, _resize_why_not, integers=Arithmetic.COMPUTES_ALIKE
    ),
}
