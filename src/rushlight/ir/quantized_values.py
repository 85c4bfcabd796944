"""Reads scales, zero points and ranges from the quantising and dequantising calls of a graph.

torch's quantised programs compute real numbers between calls that dequantise and calls that
quantise. A backend with integer arithmetic learns from those calls what it can compute in integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.ir.custom_ops.quantized import NAMESPACE
from rushlight.ir.operators import arguments

Constant = Callable[[Any], torch.Tensor | None]
"""A function from an argument to its tensor if it is a constant's node; else to None."""

_PER = ("tensor", "channel", "channel_group", "token")

_CHOOSING = (
    "choose_qparams",
    "choose_qparams_symmetric",
    "choose_qparams_per_token",
    "choose_qparams_per_token_asymmetric",
    "_choose_qparams_per_token_asymmetric_impl",
)


@dataclass(frozen=True)
class Affine:
    """real = (integer - zero point) * scale, with integers from `low` to `high`.

    Attributes:
        source: the value that is quantised or dequantised.
        per: the granularity of scales: "tensor", "channel", "channel_group" or "token".
        scale: one scale for all elements, or the node of a tensor of scales.
        zero_point: the same for zero points; None means zero.
        low, high: the range of the integers: numbers, or nodes that compute them.
        dtype: the integers' dtype.
        real: the dtype that a call dequantises to; None for a call that quantises.
        axis: the dimension along which every index has its own scale; None if there is none.
        group: the number of neighbours in the last dimension that share a scale; 0 if all do.
        chosen: the call that computes scale and zero point from the values at run time, or None.
    """

    source: Node
    per: str
    scale: float | Node
    zero_point: int | Node | None
    low: int | Node
    high: int | Node
    dtype: torch.dtype
    real: torch.dtype | None = None
    axis: int | None = None
    group: int = 0
    chosen: Node | None = None

    def same(self, other: Affine | None) -> bool:
        """Whether equal integers mean equal real numbers in both."""
        return other is not None and all(
            getattr(self, name) == getattr(other, name)
            for name in ("per", "scale", "zero_point", "dtype", "axis", "group", "chosen")
        )

    def scales(self, constant: Constant) -> torch.Tensor | None:
        """The scales in float32; None if they are not constants."""
        scales = _tensor(self.scale, constant)
        return None if scales is None else scales.to(torch.float32)

    def zero_points(self, constant: Constant) -> torch.Tensor | None:
        """The zero points; None if they are not constants."""
        return _tensor(0 if self.zero_point is None else self.zero_point, constant)

    def limits(self, constant: Constant) -> tuple[int, int] | None:
        """The range of the integers; None if it is not constant."""
        low, high = (_tensor(end, constant) for end in (self.low, self.high))
        if low is None or high is None or low.numel() != 1 or high.numel() != 1:
            return None
        return int(low), int(high)

    def constants(
        self, constant: Constant
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """The integers, scales and zero points; None if one of these is not constant."""
        data, scales = constant(self.source), self.scales(constant)
        zero_points = self.zero_points(constant)
        if data is None or scales is None or zero_points is None:
            return None
        return data, scales, zero_points


@dataclass(frozen=True)
class Chosen:
    """Real numbers that are quantised dynamically and then dequantised.

    Attributes:
        there, back: the parameters of the call that quantises and of the one that dequantises.
        calls: all nodes involved, in order: the call that chooses scale and zero point, the two
            nodes that select them, the call that quantises, the call that dequantises.
    """

    there: Affine
    back: Affine
    calls: tuple[Node, ...]


def quantizes(node: Any) -> bool:
    """Whether a call quantises."""
    return name_of(node).removeprefix("quantize_per_") in _PER


def dequantizes(node: Any) -> bool:
    """Whether a call dequantises."""
    return name_of(node).removeprefix("dequantize_per_") in _PER


def dequantizes_constant(node: Any, constant: Constant) -> bool:
    """Whether a call dequantises, and all its inputs are constants."""
    return dequantizes(node) and all(constant(one) is not None for one in node.all_input_nodes)


def chooses(node: Node) -> bool:
    """Whether a node chooses a scale and a zero point, or selects one of the two."""
    if node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return name_of(node) in _CHOOSING


def affine_of(node: Any) -> Affine | None:
    """The parameters of a quantising or dequantising call; None for any other node."""
    per = name_of(node).partition("quantize_per_")[2]
    if per not in _PER:
        return None
    args = arguments(node)
    scale: Any = args.get("scales", args.get("scale"))
    picked = isinstance(scale, Node) and scale.target is operator.getitem
    real = args.get("output_dtype", args.get("out_dtype")) or torch.float32
    return Affine(
        source=args["input"],
        per=per,
        scale=scale,
        zero_point=args.get("zero_points", args.get("zero_point")),
        low=args["quant_min"],
        high=args["quant_max"],
        dtype=args["dtype"],
        real=real if dequantizes(node) else None,
        axis=args.get("axis", 0 if per == "channel_group" else None),
        group=args.get("group_size", 0),
        chosen=scale.args[0] if picked else None,
    )


def chosen_of(node: Any) -> Chosen | None:
    """The dynamic quantisation that a dequantising call undoes, per tensor or per token; None for
    any other node."""
    back = affine_of(node) if dequantizes(node) else None
    there = affine_of(back.source) if back is not None and quantizes(back.source) else None
    if back is None or there is None or there.axis is not None or not there.same(back):
        return None
    choice, picked = there.chosen, (there.scale, there.zero_point)
    if choice is None or not chooses(choice) or choice.args[0] is not there.source:
        return None
    if [getattr(one, "args", ()) for one in picked] != [(choice, 0), (choice, 1)]:
        return None
    picks = (user for user in choice.users if user.target is operator.getitem)
    return Chosen(there, back, (choice, *picks, back.source, node))


def name_of(node: Any) -> str:
    """The name of an operator of torch's quantised programs; "" for any other node."""
    target = node.target if isinstance(node, Node) else None
    name = target.name() if isinstance(target, OpOverload) else ""
    library, _, name = name.partition("::")
    return name.partition(".")[0] if library == NAMESPACE else ""


def _tensor(argument: float | Node, constant: Constant) -> torch.Tensor | None:
    tensor = constant(argument) if isinstance(argument, Node) else torch.tensor(argument)
    return None if tensor is None else tensor.detach()
