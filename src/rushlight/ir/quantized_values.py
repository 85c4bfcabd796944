"""How integers stand for real numbers in a graph: what quantising and dequantising calls say.

torch's quantised programs compute real numbers between calls that dequantise and calls that
quantise. A backend with integer arithmetic reads from those calls what it may compute in integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.ir.quantized_ops import NAMESPACE

_ARGUMENTS = {
    "per_tensor": "scale zero_point low high dtype",
    "per_channel": "scale zero_point axis low high dtype",
    "per_channel_group": "scale zero_point low high dtype group",
    "per_token": "scale zero_point low high dtype",
}
"""{what has a scale of its own: what the arguments after the first say, in order}."""

_CHOOSING = (
    "choose_qparams",
    "choose_qparams_symmetric",
    "choose_qparams_per_token",
    "choose_qparams_per_token_asymmetric",
    "_choose_qparams_per_token_asymmetric_impl",
)


@dataclass(frozen=True)
class Affine:
    """real = (integer - zero point) * scale, integers from `low` to `high`.

    Attributes:
        source: what is quantised or dequantised.
        scale: of all elements, or the node of a tensor of them.
        zero_point: likewise; None is zero.
        low, high: the range of the integers.
        dtype: that they are stored in.
        axis: the dimension along which every index has a scale of its own; None if none has.
        group: how many elements side by side in the last dimension share a scale; 0 if all do.
        chosen: the call that chooses scale and zero point from what is quantised, when it runs.
    """

    source: Node
    scale: float | Node
    zero_point: int | Node | None
    low: int
    high: int
    dtype: torch.dtype
    axis: int | None = None
    group: int = 0
    chosen: Node | None = None

    def same(self, other: Affine | None) -> bool:
        """Whether the same integers stand for the same numbers."""
        return other is not None and all(
            getattr(self, name) == getattr(other, name)
            for name in ("scale", "zero_point", "dtype", "axis", "group", "chosen")
        )

    def scales(self, constant: Callable[[Any], torch.Tensor | None]) -> torch.Tensor | None:
        """The scales, float32; None if they are not constants."""
        return _tensor(self.scale, constant, torch.float32)

    def zero_points(self, constant: Callable[[Any], torch.Tensor | None]) -> torch.Tensor | None:
        """The zero points, int64; None if they are not constants."""
        return _tensor(0 if self.zero_point is None else self.zero_point, constant, torch.int64)


def quantizes(node: Node) -> bool:
    """Whether a call makes integers of real numbers."""
    return _name(node).removeprefix("quantize_") in _ARGUMENTS


def dequantizes(node: Node) -> bool:
    """Whether a call makes real numbers of integers."""
    return _name(node).removeprefix("dequantize_") in _ARGUMENTS


def chooses(node: Node) -> bool:
    """Whether a call chooses a scale and a zero point, or is one of the two."""
    if node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return _name(node) in _CHOOSING


def affine_of(node: Any) -> Affine | None:
    """What a quantising or dequantising call says; None of any other."""
    if not isinstance(node, Node) or not (quantizes(node) or dequantizes(node)):
        return None
    names = _ARGUMENTS[_name(node).partition("quantize_")[2]].split()
    found: dict[str, Any] = dict(zip(names, node.args[1:], strict=False))
    if not isinstance(found["low"], int):  # of an overload whose range is computed
        return None
    if "group" in found:
        found["axis"] = 0
    scale = found["scale"]
    picked = isinstance(scale, Node) and scale.target is operator.getitem
    source: Any = node.args[0]
    return Affine(source, **found, chosen=scale.args[0] if picked else None)


def _name(node: Node) -> str:
    """The name of an operator of the library; "" of any other."""
    name = node.target.name() if isinstance(node.target, OpOverload) else ""
    library, _, name = name.partition("::")
    return name.partition(".")[0] if library == NAMESPACE else ""


def _tensor(
    given: float | Node, constant: Callable[[Any], torch.Tensor | None], dtype: torch.dtype
) -> torch.Tensor | None:
    found = constant(given) if isinstance(given, Node) else torch.tensor(given)
    return None if found is None else found.detach().to(dtype)
