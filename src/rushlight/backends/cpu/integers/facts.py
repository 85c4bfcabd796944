"""How the engine reads calls that quantise and dequantise: as bytes, weights or rows."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from rushlight.capture.recurrent import recurrence_of
from rushlight.ir.custom_ops.fake_quantize import fake_quantize_groups
from rushlight.ir.operators import arguments
from rushlight.ir.quantized_values import (
    Constant,
    affine_of,
    chosen_of,
    dequantizes,
    dequantizes_constant,
    name_of,
)
from rushlight.schema.cpu_engine import Limit

aten = torch.ops.aten

_FLIPPED = 128  # added to int8 and its zero point, since the engine's bytes are unsigned
LEAST, GREATEST = 0, 255


@dataclass(frozen=True)
class Quantization:
    """How the engine's bytes, which are unsigned, stand for numbers: scale * (byte - zero_point).

    Attributes:
        scale: a float32.
        zero_point: the byte that is zero.
        low, high: bytes that quantising clamps to.
    """

    scale: float
    zero_point: int
    low: int = LEAST
    high: int = GREATEST

    def alike(self, other: Quantization) -> bool:
        """Whether equal bytes stand for equal numbers."""
        return (self.scale, self.zero_point) == (other.scale, other.zero_point)

    def bytes(self, numbers: torch.Tensor) -> torch.Tensor:
        """Numbers as bytes, rounded to even as torch does."""
        rounded = torch.round(numbers.float() * (1.0 / self.scale)) + self.zero_point
        return rounded.nan_to_num(self.zero_point).clamp(self.low, self.high).to(torch.uint8)

    def byte(self, number: float) -> int:
        """One number as a byte."""
        return int(self.bytes(torch.tensor(number)))

    def numbers(self, data: torch.Tensor) -> torch.Tensor:
        """The numbers that bytes stand for."""
        return (data.to(torch.int32) - self.zero_point).float() * self.scale


def read(node: Node, data: Constant) -> Quantization | None:
    """The quantization by which a call quantises or dequantises, if it is known at export.

    None for any other call.

    Args:
        node: `quantize_per_tensor` or `dequantize_per_tensor`.
        data: constants.
    """
    affine = affine_of(node)
    if affine is None or affine.per != "tensor" or affine.dtype not in (torch.int8, torch.uint8):
        return None
    scales, zeros, limits = affine.scales(data), affine.zero_points(data), affine.limits(data)
    if scales is None or zeros is None or limits is None:
        return None
    if scales.numel() != 1 or zeros.numel() != 1 or not 0 < scales.item() < math.inf:
        return None
    shift = _FLIPPED if affine.dtype == torch.int8 else 0
    ends = [min(max(end + shift, LEAST), GREATEST) for end in limits]
    zero = int(zeros) + shift
    return Quantization(scales.item(), zero, *ends) if LEAST <= zero <= GREATEST else None


@dataclass(frozen=True, eq=False)
class Weights:
    """Quantised weights, which have no zero point.

    Attributes:
        node: the constant.
        columns: the constant's dimension of output columns, which is the first one of `data`.
        data: integers [columns, ...].
        scales: float32 [columns, groups of terms].
        low, high: the range of the integers.
    """

    node: Node
    columns: int
    data: torch.Tensor
    scales: torch.Tensor
    low: int
    high: int

    @property
    def group_size(self) -> int:
        """The number of terms that share a scale; 0 if all do."""
        groups = self.scales.shape[1]
        return self.data[0].numel() // groups if groups > 1 else 0

    @property
    def is_half(self) -> bool:
        """Whether they take 4 bits each."""
        return self.low >= -8 and self.high <= 7


def weights_of(node: Any, data: Constant, *, columns: int = 0) -> Weights | None:
    """The weights that a call dequantises, if they are constants without zero points.

    Args:
        node: an argument of a product or convolution.
        data: constants.
        columns: the dimension that has a scale for each of its elements.
    """
    affine = affine_of(node) if dequantizes(node) else None
    if affine is None or affine.per == "token" or affine.real != torch.float32:
        return None
    constants, limits = affine.constants(data), affine.limits(data)
    if constants is None or limits is None:
        return None
    integers, scales, zeros = constants
    if integers.dtype != torch.int8 or integers.dim() < 2 or bool(zeros.any()):
        return None
    if affine.axis is None and scales.numel() != 1:
        return None
    if affine.axis is not None and affine.axis % integers.dim() != columns:
        return None
    integers = integers.movedim(columns, 0)
    groups = integers.shape[1] // affine.group if affine.group else 1
    shape = (integers.shape[0], groups)
    scales = scales.expand(shape) if scales.numel() == 1 else scales.reshape(shape)
    return Weights(affine.source, columns, integers, scales, *limits)


@dataclass(frozen=True)
class Operands:
    """The operands of a product or convolution.

    Attributes:
        x: rows or images.
        weight, bias: its other operands; None for no bias.
        columns: the dimension of `weight` that becomes the result's columns.
    """

    x: Any
    weight: Any
    bias: Any
    columns: int


def operands_of(node: Node) -> Operands | None:
    """The operands of a product or convolution; None for any other call."""
    if node.target not in _OPERANDS:
        return None
    x, weight, bias, columns = _OPERANDS[node.target]
    args = arguments(node)
    columns = 1 if is_transposed(node) else columns
    return Operands(args[x], args[weight], args[bias] if bias else None, columns)


def is_transposed(node: Node) -> bool:
    """Whether a call is a transposed convolution, which the engine computes in float32."""
    return node.target is aten.convolution.default and bool(arguments(node)["transposed"])


_OPERANDS = {
    aten.linear.default: ("input", "weight", "bias", 0),
    aten.convolution.default: ("input", "weight", "bias", 0),
    aten.addmm.default: ("mat1", "mat2", "self", 1),
    aten.mm.default: ("self", "mat2", "", 1),
}


def constant_of(node: Any, data: Constant) -> torch.Tensor | None:
    """The elements of a constant, or those that a constant is dequantised to."""
    if not dequantizes_constant(node, data):
        return data(node)
    args = [data(arg) if isinstance(arg, Node) else arg for arg in node.args]
    kwargs = {k: data(arg) if isinstance(arg, Node) else arg for k, arg in node.kwargs.items()}
    made: torch.Tensor = node.target(*args, **kwargs)
    return made


def recurrent_weights(
    node: Node, data: Constant, *, of_bytes: bool = False
) -> list[Weights] | None:
    """The weights of recurrent layers that the engine multiplies with rows of bytes; None of other
    calls, and of layers that it computes in float32.

    Whoever quantises the sequence has the hidden states quantised, too.

    Args:
        node: the call.
        data: constants.
        of_bytes: whether the sequence is known to be bytes.
    """
    layer = recurrence_of(node)
    if layer is None:
        return None
    if not of_bytes and rows_of(layer.x) is None and not is_static(layer.x, data):
        return None
    matrices = [weights_of(one, data) for one in layer.matrices]
    terms = int(Limit.QUANTIZED_TERMS)
    fits = all(one and not one.group_size and one.data.shape[1] <= terms for one in matrices)
    return [one for one in matrices if one] if fits else None


_WHOLE = {
    aten.view_copy.default,
    aten.permute_copy.default,
    aten.transpose_copy.int,
    aten.expand_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.unsqueeze_copy.default,
    aten.alias_copy.default,
}
PARTS = frozenset({aten.select_copy.int, aten.slice_copy.Tensor, aten.as_strided_copy.default})
"""Calls that move elements and leave out some."""
MOVES = PARTS | _WHOLE
"""Calls that move elements as they are."""


def is_greatest(node: Node) -> bool:
    """Whether a value is the first result of a maximum over windows."""
    args: Any = node.args
    is_first = node.target is operator.getitem and args[1] == 0
    return is_first and args[0].target is aten.max_pool2d_with_indices.default


def static_of(node: Any, data: Constant) -> Quantization | None:
    """The quantization that a value was dequantised with, also if it was moved afterwards; None if
    that is not known at export."""
    quantization: Quantization | None = None
    seen: set[Node] = set()
    todo = [node]
    while todo:
        one = todo.pop()
        if not isinstance(one, Node):
            return None
        if one in seen:
            continue
        seen.add(one)
        if dequantizes(one):
            affine = affine_of(one)
            is_float = affine is not None and affine.real == torch.float32
            here = read(one, data) if is_float else None
            if here is None or (quantization is not None and not quantization.alike(here)):
                return None
            quantization = quantization or here
            continue
        sources = _moved(one)
        if not sources:
            return None
        todo += reversed(sources)
    return quantization


def _moved(node: Node) -> list[Any]:
    """The operands whose elements a call moves unchanged; [] if it computes."""
    if node.target is aten.cat.default:
        return list(arguments(node)["tensors"])
    if is_greatest(node):
        return [node.all_input_nodes[0].args[0]]
    pads = node.target is aten.constant_pad_nd.default and not arguments(node)["value"]
    return node.all_input_nodes[:1] if pads or node.target in MOVES else []


def is_static(node: Any, data: Constant) -> bool:
    """Whether a value was dequantised with parameters that are known at export."""
    return static_of(node, data) is not None


def rows_of(node: Any) -> Node | None:
    """The float value whose rows were quantised at run time and dequantised again to give `node`.

    A tensor that is quantised at run time as a whole is quantised row by row here, as XNNPACK
    does: each row's scale is at least as fine.
    """
    chosen = chosen_of(node)
    if chosen is None or name_of(chosen.calls[0]) not in CHOOSE:
        return None
    there, back = chosen.there, chosen.back
    is_alike = (there.low, there.high) == (back.low, back.high)
    is_byte = there.dtype in (torch.int8, torch.uint8)
    return there.source if is_alike and is_byte and back.real == torch.float32 else None


def group_size_of(node: Any) -> int | None:
    """The size of the groups in which a call rounds rows to integers; None for any other node."""
    if not isinstance(node, Node) or node.target is not fake_quantize_groups:
        return None
    return int(arguments(node)["group_size"])


CHOOSE = (
    "choose_qparams",
    "choose_qparams_per_token_asymmetric",
    "_choose_qparams_per_token_asymmetric_impl",
)
"""Calls that choose parameters at run time as the engine's rows have them."""
