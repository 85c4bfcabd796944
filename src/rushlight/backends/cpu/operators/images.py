"""Convolutions, pads and pools over images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph import panels as pack
from rushlight.backends.cpu.graph.sizes import Size, greater, magnitude, shape_of, simple, sizes_of
from rushlight.backends.cpu.graph.values import CHANNELS_LAST, View
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.operators.facts import PREPARED, only_first
from rushlight.ir.operators import arguments
from rushlight.partition.operators import Operator, beyond_window, needs_constants, val_of
from rushlight.schema import cpu_engine as fb
from rushlight.schema.cpu_engine import Limit

aten = torch.ops.aten


def _conv_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if val_of(args["input"]).dim() not in (3, 4):
        return "the engine's convolutions have one or two dimensions"
    if args["transposed"] and any(d != 1 for d in args["dilation"]):
        return "the engine's transposed convolutions are not dilated"
    sliding = (*args["stride"], *args["padding"], *args["dilation"])
    reason = beyond_window(Limit.WINDOW, *val_of(args["weight"]).shape[2:], *sliding)
    if reason is not None:
        return reason
    return needs_constants("weight", "bias", because=PREPARED)(node, is_constant)


def _convolution(b: Builder, node: Node) -> View:
    args = arguments(node)
    image, edges = zeros_around(b, args["input"])
    weight, groups = b.data(args["weight"]), args["groups"]
    assert weight is not None
    rank = weight.dim() - 2
    stride, padding, dilation = (for_each(args[n], rank) for n in ("stride", "padding", "dilation"))
    out_sizes = list(shape_of(node))
    is_line = image.meta.dim() == 3
    if is_line:
        image = image.moved(image.meta.unsqueeze(2))
        weight = weight.unsqueeze(2)
        stride, dilation, out_sizes = (
            [1, *stride],
            [1, *dilation],
            [*out_sizes[:2], 1, out_sizes[2]],
        )
        padding = [0, *padding]
    kernel = list(weight.shape[2:])
    padding = [p + e for p, e in zip((*padding, *padding), edges, strict=True)]
    kind = fb.ConvolutionKind.DENSE
    if args["transposed"]:
        kind = fb.ConvolutionKind.TRANSPOSED
    elif groups == image.shape[1] and groups > 1:
        kind = fb.ConvolutionKind.DEPTHWISE
    elif not b.is_half(args["weight"]) and _suits_winograd(
        weight, stride, dilation, groups, out_sizes
    ):
        kind = fb.ConvolutionKind.WINOGRAD
    if kind is not fb.ConvolutionKind.DENSE:
        image = b.in_order(image, CHANNELS_LAST)
    weights = b.weights(
        args["weight"], (args["weight"], kind), lambda: pack.convolution(weight, groups, kind)
    )
    out = b.new(out_sizes, CHANNELS_LAST)
    operation = fb.Convolution(kind, kernel, stride, padding, dilation, groups)
    b.emit(operation, [image, weights, b.bias(args["bias"])], [out])
    return out.moved(out.meta.squeeze([2])) if is_line else out


# Winograd's weights are four times as large as plain ones: the most bytes that they may add.
_MAX_EXTRA_BYTES = 2 << 20
# With fewer tiles than the tallest tile of a product has rows, Winograd is not quicker.
_LEAST_TILES = 14


def _suits_winograd(
    weight: torch.Tensor, stride: list[int], dilation: list[int], groups: int, sizes: list[Size]
) -> bool:
    """Whether Winograd's algorithm is quicker, and its weights not much larger."""
    outputs, inputs, *kernel = weight.shape
    if kernel != [3, 3] or stride != [1, 1] or dilation != [1, 1] or groups != 1:
        return False
    if outputs % pack.PANEL or inputs % pack.PANEL:
        return False
    if outputs * inputs * (36 - 9) * weight.element_size() > _MAX_EXTRA_BYTES:
        return False
    batch = sizes[0] if isinstance(sizes[0], int) else 1
    image = [magnitude(size) for size in sizes[2:]]  # a dynamic size is taken for a large one
    # At most a third of what the tiles compute may lie outside the image.
    tiles = math.prod(-(-size // 4) for size in image)
    return tiles * 12 <= math.prod(image) and tiles * batch >= _LEAST_TILES


def _is_zero_pad(node: Any, zero: float = 0) -> bool:
    """Whether a call pads images with `zero`, and only convolutions read the result."""
    if not isinstance(node, Node) or node.target is not aten.constant_pad_nd.default:
        return False
    args = arguments(node)
    pad = list(args["pad"])
    return (
        args["value"] == zero
        and len(pad) <= 4
        and val_of(node).dim() == 4
        and all(isinstance(n, int) and n >= 0 for n in pad)
        and all(_pads(user, node, zero) for user in node.users)
    )


def _pads(user: Node, image: Node, zero: float) -> bool:
    """Whether a call is a convolution of `image` that can do its padding."""
    args: Any = user.args
    if user.target not in (calls.convolution, aten.convolution.default):
        return False
    if args[0] is not image or image in user.kwargs.values():
        return False
    padding = args[4].padding if user.target is calls.convolution else args[4]
    zeros = arguments(image)["pad"]
    if beyond_window(Limit.WINDOW, max(zeros, default=0) + max(padding)) is not None:
        return False
    if user.target is calls.convolution:
        outside: int = args[-1]
        return outside == zero
    return user.target is aten.convolution.default and zero == 0 and not args[6]


def zeros_around(b: Builder, node: Any, zero: float = 0) -> tuple[View, list[int]]:
    """An image before it was padded with `zero`, and the padding: top, left, bottom, right."""
    if not _is_zero_pad(node, zero):
        return b.value(node), [0] * 4
    args = arguments(node)
    left, right, top, bottom = (*args["pad"], 0, 0)[:4]
    return b.value(args["self"]), [top, left, bottom, right]


def _pad(b: Builder, node: Node) -> View | None:
    args = arguments(node)
    if _is_zero_pad(node, args["value"]):
        return None  # the convolutions that read it pad
    source = b.value(args["self"])
    out = b.new(shape_of(node), dtype=val_of(node).dtype)
    inner = out.meta
    pad = sizes_of(args["pad"])
    for i in range(len(pad) // 2):
        dim, (low, high) = -1 - i, pad[2 * i : 2 * i + 2]
        first, cut = greater(low, 0), greater(-low, 0)
        size = simple(inner.shape[dim] - first - greater(high, 0))
        inner = inner.narrow(dim, first, size)
        source = source.moved(source.meta.narrow(dim, cut, size))
    b.copy(b.filled(args["value"], out.shape, out.meta.dtype), out)
    b.copy(source, out.moved(inner))
    return out


def window_of(args: dict[str, Any]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Kernel, stride, padding on four sides and dilation of a pool, by its arguments."""
    kernel = _pair(args["kernel_size"])
    stride = _pair(args["stride"] or kernel)
    padding = _pair(args["padding"])
    return kernel, stride, [*padding, *padding], _pair(args.get("dilation") or 1)


def for_each(numbers: Any, rank: int) -> list[int]:
    """A number for each dimension; a single one is for all."""
    listed = [numbers] if isinstance(numbers, int) else list(numbers)
    return listed * rank if len(listed) == 1 else listed


def _pair(numbers: Any) -> list[int]:
    return for_each(numbers, 2)


def _pool_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if val_of(args["self"]).dim() != 4:
        return "the engine pools images [N, C, H, W]"
    if args["ceil_mode"]:
        return "its ceil_mode is True, and the engine's pools round down"
    reason = beyond_window(Limit.WINDOW, *(n for numbers in window_of(args) for n in numbers))
    if reason is not None:
        return reason
    return only_first(node, is_constant) if "dilation" in args else None


def _pool(b: Builder, node: Node) -> Any:
    args = arguments(node)
    is_max = "dilation" in args
    image = b.in_order(b.value(args["self"]), CHANNELS_LAST)
    val = val_of(node)[0] if is_max else val_of(node)
    out = b.new(shape_of(val), CHANNELS_LAST)
    operation = fb.Pooling(not is_max, *window_of(args))
    if not is_max:
        operation.count_padding = bool(args["count_include_pad"])
        operation.divisor = args["divisor_override"] or 0
    b.emit(operation, [image], [out])
    return [out] if is_max else out


OPERATORS = {
    aten.convolution.default: Operator(_convolution, _conv_why_not),
    aten.max_pool2d_with_indices.default: Operator(_pool, _pool_why_not),
    aten.avg_pool2d.default: Operator(_pool, _pool_why_not),
    aten.constant_pad_nd.default: Operator(_pad),
}
