"""What calls that quantise and dequantise say: which numbers the integers stand for."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.backends.cpu.operator_facts import arguments

aten = torch.ops.aten
Data = Callable[[Any], torch.Tensor | None]
"""The elements of a constant of the program; None of what is none."""

_NAMESPACE = "quantized_decomposed::"
_FLIPPED = 128  # the engine's bytes are unsigned: the zero points of int8 are so much less
LEAST, GREATEST = 0, 255


@dataclass(frozen=True)
class Quantization:
    """What bytes of the engine, which are unsigned, stand for: scale * (byte - zero_point).

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
        """Whether the same bytes are the same numbers."""
        return (self.scale, self.zero_point) == (other.scale, other.zero_point)

    def bytes(self, numbers: torch.Tensor) -> torch.Tensor:
        """Numbers as bytes, rounded to even as torch does."""
        rounded = torch.round(numbers.float() * (1.0 / self.scale)) + self.zero_point
        return rounded.nan_to_num(self.zero_point).clamp(self.low, self.high).to(torch.uint8)

    def byte(self, number: float) -> int:
        """One number as a byte."""
        return int(self.bytes(torch.tensor(number)))

    def numbers(self, data: torch.Tensor) -> torch.Tensor:
        """What bytes stand for."""
        return (data.to(torch.int32) - self.zero_point).float() * self.scale


def kind_of(node: Any) -> str:
    """The name of a call that quantises, dequantises or chooses parameters; "" of another one."""
    if not isinstance(node, Node) or not isinstance(node.target, OpOverload):
        return ""
    name = node.target._schema.name
    return name.removeprefix(_NAMESPACE) if name.startswith(_NAMESPACE) else ""


def read(node: Node, data: Data) -> Quantization | None:
    """What the integers are that a call makes of a tensor, or takes as one, if it is known ahead.

    Args:
        node: `quantize_per_tensor` or `dequantize_per_tensor`.
        data: constants.
    """
    args = arguments(node)
    scale, zero, low, high = (
        _number(args[name], data) for name in ("scale", "zero_point", "quant_min", "quant_max")
    )
    if scale is None or zero is None or low is None or high is None:
        return None
    if args["dtype"] not in (torch.int8, torch.uint8) or not 0 < scale < math.inf:
        return None
    shift = _FLIPPED if args["dtype"] == torch.int8 else 0
    ends = [min(max(int(n) + shift, LEAST), GREATEST) for n in (low, high)]
    scale, zero = torch.tensor(scale, dtype=torch.float32).item(), int(zero) + shift
    is_byte = LEAST <= zero <= GREATEST
    return Quantization(scale, zero, *ends) if scale > 0 and is_byte else None


def _number(arg: Any, data: Data) -> float | None:
    if isinstance(arg, int | float):
        return arg
    tensor = data(arg)
    return tensor.item() if tensor is not None and tensor.numel() == 1 else None


@dataclass(frozen=True, eq=False)
class Weights:
    """Quantised weights, which have no zero point.

    Attributes:
        node: the constant.
        data: integers [columns, ...].
        scales: float32 [columns, groups of terms].
        low, high: the range of the integers.
    """

    node: Node
    data: torch.Tensor
    scales: torch.Tensor
    low: int
    high: int

    @property
    def group_size(self) -> int:
        """Terms that share a scale; 0: all of them."""
        groups = self.scales.shape[1]
        return self.data[0].numel() // groups if groups > 1 else 0

    @property
    def is_half(self) -> bool:
        """Whether they take 4 bits each."""
        return self.low >= -8 and self.high <= 7


def weights_of(node: Any, data: Data, *, columns: int = 0) -> Weights | None:
    """The weights that a call dequantises, if they are constants without zero points.

    Args:
        node: an argument of a product or convolution.
        data: constants.
        columns: the dimension that has a scale for each of its elements.
    """
    kind = kind_of(node)
    if kind not in _WEIGHTS:
        return None
    args = arguments(node)
    integers, (scales, zeros) = data(args["input"]), _parameters(args, kind, data)
    if integers is None or scales is None or integers.dtype != torch.int8 or integers.dim() < 2:
        return None
    if zeros is None or bool(zeros.any()) or _makes(args) != torch.float32:
        return None
    if kind == "dequantize_per_channel" and args["axis"] % integers.dim() != columns:
        return None
    if kind == "dequantize_per_channel_group" and columns != 0:
        return None
    integers = integers.movedim(columns, 0)
    scales = scales.to(torch.float32).reshape(-1 if scales.numel() > 1 else 1, 1)
    groups = 1
    if kind == "dequantize_per_channel_group":
        groups = integers.shape[1] // args["group_size"]
    shape = (integers.shape[0], groups)
    scales = scales.expand(shape) if scales.numel() == 1 else scales.reshape(shape)
    low, high = (_number(args[name], data) for name in ("quant_min", "quant_max"))
    if low is None or high is None:
        return None
    return Weights(args["input"], integers, scales, int(low), int(high))


_WEIGHTS = ("dequantize_per_channel", "dequantize_per_tensor", "dequantize_per_channel_group")


@dataclass(frozen=True)
class Operands:
    """What a product or convolution multiplies and adds.

    Attributes:
        x: rows or images.
        weight, bias: its other operands; no bias is None.
        columns: the dimension of `weight` that the result has.
    """

    x: Any
    weight: Any
    bias: Any
    columns: int


def operands_of(node: Node) -> Operands | None:
    """The operands of a product or convolution; None of another call."""
    if node.target not in _OPERANDS:
        return None
    x, weight, bias, columns = _OPERANDS[node.target]
    args = arguments(node)
    return Operands(args[x], args[weight], args[bias] if bias else None, columns)


_OPERANDS = {
    aten.linear.default: ("input", "weight", "bias", 0),
    aten.convolution.default: ("input", "weight", "bias", 0),
    aten.addmm.default: ("mat1", "mat2", "self", 1),
    aten.mm.default: ("self", "mat2", "", 1),
}


def constant_of(node: Any, data: Data) -> torch.Tensor | None:
    """The elements of a constant, or those that a constant is dequantised to."""
    if not dequantizes_constant(node, data):
        return data(node)
    args = [data(arg) if isinstance(arg, Node) else arg for arg in node.args]
    kwargs = {k: data(arg) if isinstance(arg, Node) else arg for k, arg in node.kwargs.items()}
    made: torch.Tensor = node.target(*args, **kwargs)
    return made


def _parameters(
    args: dict[str, Any], kind: str, data: Data
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Scales and zero points."""
    if kind == "dequantize_per_tensor":
        pair = [_number(args[name], data) for name in ("scale", "zero_point")]
        found = [None if one is None else torch.tensor([one]) for one in pair]
        return found[0], found[1]
    zeros = args["zero_points"]
    scales = data(args["scales"])
    return scales, torch.zeros(1) if zeros is None else data(zeros)


def _makes(args: dict[str, Any]) -> torch.dtype:
    """The dtype of what a call dequantises to."""
    given = args.get("output_dtype", args.get("out_dtype"))
    return torch.float32 if given is None else given


def dequantizes_constant(node: Any, data: Data) -> bool:
    """Whether a call dequantises a constant by constants."""
    return kind_of(node).startswith("dequantize") and all(
        data(one) is not None for one in node.all_input_nodes
    )


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
    """Whether a value is what a maximum over windows has for its first result."""
    args: Any = node.args
    is_first = node.target is operator.getitem and args[1] == 0
    return is_first and args[0].target is aten.max_pool2d_with_indices.default


def static_of(node: Any, data: Data) -> Quantization | None:
    """What the integers are that a value was dequantised from, perhaps to be moved then; None if
    that is not known ahead of a run."""
    while isinstance(node, Node):
        if kind_of(node) == "dequantize_per_tensor":
            is_float = _makes(arguments(node)) == torch.float32
            return read(node, data) if is_float else None
        if node.target is aten.cat.default:
            found = [static_of(one, data) for one in arguments(node)["tensors"]]
            first = found[0]
            is_one = first is not None and all(f is not None and first.alike(f) for f in found)
            return first if is_one else None
        pads = node.target is aten.constant_pad_nd.default and not arguments(node)["value"]
        if not (pads or node.target in MOVES or is_greatest(node)):
            return None
        node = node.all_input_nodes[0]
        if node.target is aten.max_pool2d_with_indices.default:
            node = node.args[0]
    return None


def is_static(node: Any, data: Data) -> bool:
    """Whether a value was dequantised by numbers that are known ahead of a run."""
    return static_of(node, data) is not None


def rows_of(node: Any) -> Node | None:
    """What a value was before its rows were quantised by what they hold, and dequantised again.

    Whole tensors that are quantised so are taken row by row, as XNNPACK does: each row's integers
    are at least as fine.
    """
    if kind_of(node) not in ("dequantize_per_tensor", "dequantize_per_token"):
        return None
    back = arguments(node)
    quantized = back["input"]
    if kind_of(quantized) not in ("quantize_per_tensor", "quantize_per_token"):
        return None
    there = arguments(quantized)
    for name in ("scale", "scales"):
        if name in there:
            return _chosen(there, back, name)
    return None


def _chosen(there: dict[str, Any], back: dict[str, Any], scale: str) -> Node | None:
    """The argument of both calls, if what chose their parameters looked at it."""
    names = (scale, scale.replace("scale", "zero_point"), "quant_min", "quant_max", "dtype")
    if any(there[name] != back[name] for name in names):
        return None
    chosen = [there[name] for name in names[:2]]
    if not all(isinstance(n, Node) and len(n.args) == 2 for n in chosen):
        return None
    sources = {n.args[0] for n in chosen}
    source = sources.pop()
    if sources or kind_of(source) not in CHOOSE or [n.args[1] for n in chosen] != [0, 1]:
        return None
    x = there["input"]
    is_byte = there["dtype"] in (torch.int8, torch.uint8)
    return x if is_byte and source.args[0] is x and _makes(back) == torch.float32 else None


CHOOSE = (
    "choose_qparams",
    "choose_qparams_per_token_asymmetric",
    "_choose_qparams_per_token_asymmetric_impl",
)
"""Calls that choose parameters at run time as the engine's rows have them."""
