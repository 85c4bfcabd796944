"""Products with quantised weights: which of them XNNPACK takes, and how it stores the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.xnnpack.constants import XNN_MIN_BLOCKSIZE
from rushlight.backends.xnnpack.graph import Elements, Stored
from rushlight.ir.mapped_weights import Filled, rows_at_once
from rushlight.ir.quantized_values import Affine, Constant, affine_of, chosen_of, dequantizes
from rushlight.ir.source import source_of
from rushlight.schema import xnnpack as fb

aten = torch.ops.aten

_FOUR_BITS = (-8, 7)
_MAX_RATIO = 256
_MAX_INT32 = 2**31 - 1
_LEAST_NORMAL = torch.finfo(torch.float32).smallest_normal


ROWS, IMAGES = (Elements(fb.Datatype.QDINT8, fb.PerTokenDynamicQuant(n)) for n in (1, 3))
"""Inputs quantised at run time: each row, or each image, with its own scale and zero point."""


@dataclass(frozen=True)
class Weights:
    """Quantised weights of a product; their zero points are 0.

    Attributes:
        node: the constant.
        bits: the bits of a weight, 4 or 8.
        scales: float32: one scale, one for each output, or [outputs, groups].
        group: the number of neighbouring inputs that share a scale; 0 if all do.
    """

    node: Node
    bits: int
    scales: torch.Tensor
    group: int = 0

    def of_each(self, outputs: int) -> Weights:
        """The same weights with one scale for each output, if they have a single scale."""
        if self.scales.dim():
            return self
        return replace(self, scales=self.scales.expand(outputs).contiguous())


@dataclass(frozen=True)
class Product:
    """A product with quantised weights.

    Attributes:
        weights: the quantised weights.
        source: its input: integers, or real numbers that are quantised row by row at run time.
        quantization: the quantisation of the input; None if the input is real numbers.
        calls: the quantising and other calls around it that are taken with it.
        rows: those of `calls` that quantise rows.
    """

    weights: Weights
    source: Node
    quantization: Affine | None
    calls: tuple[Node, ...]
    rows: tuple[Node, ...] = ()


def layer_of(node: Node) -> str:
    """The name of a call's layer, for messages."""
    return f"layer {source_of(node).module or node.name}"


def why_not_scales(scales: torch.Tensor) -> str | None:
    """The reason why XNNPACK does not take these scales; None if it does."""
    bad = scales[~((scales >= _LEAST_NORMAL) & scales.isfinite())]
    if not bad.numel():
        return None
    return (
        f"a scale is {bad[0].item():g}, and XNNPACK takes normal numbers above zero: give the "
        f"observer an eps, or leave the layer out"
    )


def weights_of(node: Node, weight: Any, constant: Constant) -> Weights | str | None:
    """The quantised weights of a product, or the reason why XNNPACK does not take them.

    None if they are not quantised.

    Args:
        node: `linear` or `convolution`.
        weight: its argument.
        constant: the program's constants.
    """
    affine = affine_of(weight) if dequantizes(weight) else None
    if affine is None:
        return None
    constants = affine.constants(constant)
    if constants is None:
        return "its quantised weights are computed at run time, and XNNPACK packs weights at load"
    data, scales, zero_points = constants
    if affine.dtype != torch.int8 or zero_points.any():
        return "its weights are not int8 with zero points of 0"
    reason = why_not_scales(scales)
    if reason is not None:
        return f"its weights: {reason}"
    return _weights(node, affine, data, scales)


def _weights(node: Node, affine: Affine, data: torch.Tensor, scales: torch.Tensor) -> Weights | str:
    is_linear = node.target is aten.linear.default
    if affine.per == "tensor":
        return Weights(affine.source, 8, scales.reshape(()))
    bits = 4 if (affine.low, affine.high) == _FOUR_BITS else 8
    outputs = 1 if not is_linear and node.args[6] else 0
    if affine.axis is None or affine.axis % data.dim() != outputs:
        return "its weights have scales along another dimension than that of its outputs"
    if not is_linear and (bits == 4 or affine.group):
        return "XNNPACK's convolutions have weights of 8 bits, with a scale of each output"
    if not is_linear and outputs and node.args[8] != 1:
        return "XNNPACK's transposed convolutions in groups have one scale of all weights"
    width = data.shape[-1]
    if bits == 4 and width % 2:
        return (
            f"its weights of 4 bits have {width} columns, and XNNPACK reads them in pairs: make "
            f"the width even, or take 8 bits"
        )
    if bits == 4 and not affine.group and node.meta["val"].dtype == torch.float16:
        return (
            "its weights have 4 bits and its input float16: XNNPACK needs scales for groups there"
        )
    if not affine.group:
        return Weights(affine.source, bits, scales.reshape(-1))
    if affine.group % XNN_MIN_BLOCKSIZE or width % affine.group:
        return (
            f"its weights have groups of {affine.group}, and XNNPACK's are a multiple of "
            f"{XNN_MIN_BLOCKSIZE} that divides the width, {width}"
        )
    if bits != 4:
        return "XNNPACK's groups are of 4 bits: take one scale of each output for 8 bits"
    return Weights(affine.source, bits, scales.reshape(data.shape[0], -1), affine.group)


def rows_of(node: Any) -> tuple[Node, tuple[Node, ...]] | None:
    """The float value that is dynamically quantised and dequantised to give `node`, and the calls
    that do it; None if there is no such value.

    A tensor with one scale for all its rows counts too, because a row's own scale is at least as
    fine.
    """
    chosen = chosen_of(node)
    if chosen is None:
        return None
    there = chosen.there
    is_int8 = (there.low, there.high, there.dtype) == (-128, 127, torch.int8)
    return (there.source, chosen.calls) if is_int8 else None


def integers_of(weights: Weights, data: torch.Tensor, dim: int) -> Stored:
    """The stored tensor of weights.

    Args:
        weights: their scales and bits.
        data: the integers, in XNNPACK's order.
        dim: the dimension of the outputs.
    """
    dims: list[Any] = list(data.shape)
    if weights.group:
        groups = fb.PerChannelGroupQuant(channel_dim=dim, group_size=weights.group)
        scales = weights.scales.to(torch.bfloat16)
        return Stored(dims, fb.Datatype.QBINT4, _in_pairs(data), groups, scales)
    if not weights.scales.dim():
        one = fb.PerTensorQuant(weights.scales.item())
        return Stored(dims, fb.Datatype.QINT8, data, one)
    params = fb.PerChannelQuant(channel_dim=dim)
    if weights.bits == 4:
        return Stored(dims, fb.Datatype.QCINT4, _in_pairs(data), params, weights.scales)
    return Stored(dims, fb.Datatype.QCINT8, data, params, weights.scales)


def _in_pairs(data: torch.Tensor) -> torch.Tensor:
    """Integers from -8 to 7 [rows, columns], plus 8, two in a byte, the first in the low bits."""
    made = Filled([data.shape[0], data.shape[1] // 2], torch.uint8)
    for part in data.split(rows_at_once(data.shape[1])):
        raised = (part + 8).to(torch.uint8)
        made.add(raised[:, 0::2] | (raised[:, 1::2] << 4))
    return made.tensor


def scale_of(affine: Affine, constant: Constant) -> float:
    """The scale of values that have a single scale."""
    if isinstance(affine.scale, Node):
        scales = affine.scales(constant)
        assert scales is not None
        return float(scales)
    return affine.scale


def bias_of(weights: Weights, scale: float, bias: Node | None, constant: Constant) -> Stored | None:
    """A bias in int32, with the scale of a product of two integers.

    Args:
        weights: the product's weights.
        scale: the scale of the product's input.
        bias: a constant, or a call that dequantises one; None for no bias.
        constant: the program's constants.
    """
    if bias is None:
        return None
    integers = _bias(weights, scale, bias, constant).clamp(-_MAX_INT32 - 1, _MAX_INT32)
    data = integers.to(torch.int32)
    dims: list[Any] = list(data.shape)
    if not weights.scales.dim():
        one = fb.PerTensorQuant(weights.scales.item() * scale)
        return Stored(dims, fb.Datatype.QINT32, data, one)
    params = fb.PerChannelQuant(channel_dim=0)
    return Stored(dims, fb.Datatype.QCINT32, data, params, weights.scales * scale)


def _bias(weights: Weights, scale: float, bias: Node, constant: Constant) -> torch.Tensor:
    """A bias in units of the product's scales, rounded, in float64."""
    scales: Any = weights.scales * scale if weights.scales.dim() else weights.scales.item() * scale
    real, affine = constant(bias), affine_of(bias)
    if affine is not None:
        data, own = constant(affine.source), affine.scales(constant)
        assert data is not None and own is not None
        if torch.allclose(own.reshape(-1), torch.as_tensor(scales).float(), rtol=1e-5, atol=0):
            return data.double()
        real = data * own
    assert real is not None
    return torch.round(real.float() * (1.0 / scales)).double()


def why_not_bias(weights: Weights, scale: float, bias: Any, constant: Constant) -> str | None:
    """The reason why XNNPACK does not take a bias; None if it does."""
    if bias is None:
        return None
    affine = affine_of(bias) if isinstance(bias, Node) else None
    if affine is None and constant(bias) is None:
        return "its bias is computed, and XNNPACK packs it with the weights"
    if affine is not None and not _is_symmetric(affine, constant):
        return "its bias is quantised to other integers than int32 with zero points of 0"
    reason = why_not_scales(weights.scales * scale)
    if reason is not None:
        return f"the scales of its sums: {reason}"
    most = _bias(weights, scale, bias, constant).abs().max().item()
    if most > _MAX_INT32 // 2:  # the other half is for the products
        return f"its bias is {most:.3g} times its scale, which is too large for sums of 32 bits"
    return None


def why_not_result(weights: Weights, scale: float, result: float) -> str | None:
    """The reason why XNNPACK cannot scale a product's accumulators to its result; None if it can.

    Args:
        weights: of the product.
        scale, result: the scales of its input and of its result.
    """
    ratio = weights.scales.max().item() * scale / result
    if ratio < _MAX_RATIO:
        return None
    return (
        f"the scale of its sums is {ratio:.3g} times that of its result, and XNNPACK takes less "
        f"than {_MAX_RATIO} times: calibrate with data that resembles the model's real inputs"
    )


def _is_symmetric(affine: Affine, constant: Constant) -> bool:
    constants = affine.constants(constant)
    return constants is not None and affine.dtype == torch.int32 and not bool(constants[2].any())
