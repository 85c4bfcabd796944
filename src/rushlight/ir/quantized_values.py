"""How integers stand for real numbers in a graph: what quantising and dequantising calls say.

torch's quantised programs compute real numbers between calls that dequantise and calls that
quantise. A backend with integer arithmetic reads from those calls what it may compute in integers.
They are torch.ao's (`quantized_decomposed`, which pt2e writes) and torchao's (`quantize_`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.ir.bounds import key_of

_ARGUMENTS = {
    "quantized_decomposed::quantize_per_tensor": "scale zero_point low high dtype",
    "quantized_decomposed::dequantize_per_tensor": "scale zero_point low high dtype",
    "quantized_decomposed::quantize_per_channel": "scale zero_point axis low high dtype",
    "quantized_decomposed::dequantize_per_channel": "scale zero_point axis low high dtype",
    "quantized_decomposed::quantize_per_channel_group": "scale zero_point low high dtype group",
    "quantized_decomposed::dequantize_per_channel_group": "scale zero_point low high dtype group",
    "quantized_decomposed::quantize_per_token": "scale zero_point low high dtype",
    "quantized_decomposed::dequantize_per_token": "scale zero_point low high dtype",
    "torchao::quantize_affine": "block scale zero_point dtype low high",
    "torchao::dequantize_affine": "block scale zero_point dtype low high",
}
"""{operator: what its arguments after the first say, in order}."""

_CHOOSING = (
    "quantized_decomposed::choose_qparams",
    "quantized_decomposed::choose_qparams_symmetric",
    "quantized_decomposed::choose_qparams_per_token",
    "quantized_decomposed::choose_qparams_per_token_asymmetric",
    "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl",
    "torchao::choose_qparams_affine",
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
        axis: the dimension along which every index has a scale of its own.
        group: how many elements side by side in the last dimension have a scale of their own; 0 if
            it is all that `axis` says, and one scale for all if that is None.
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
    return "::quantize" in _name(node) and _name(node) in _ARGUMENTS


def dequantizes(node: Node) -> bool:
    """Whether a call makes real numbers of integers."""
    return "::dequantize" in _name(node) and _name(node) in _ARGUMENTS


def chooses(node: Node) -> bool:
    """Whether a call chooses a scale and a zero point, or is one of the two."""
    if node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return _name(node) in _CHOOSING


def composed() -> list[OpOverload]:
    """torchao's calls, which torch takes apart unless they are kept whole; none if torchao is not
    loaded."""
    names = [n.partition("::")[2] for n in (*_ARGUMENTS, *_CHOOSING) if n.startswith("torchao::")]
    packets = [getattr(torch.ops.torchao, name, None) for name in names]
    return [packet.default for packet in packets if packet is not None]


def affine_of(node: Any) -> Affine | None:
    """What a quantising or dequantising call says; None of any other, and of blocks that are
    neither rows, channels nor groups."""
    names = _ARGUMENTS.get(_name(node)) if isinstance(node, Node) else None
    if names is None or node.target._overloadname == "tensor2":  # whose range is no number
        return None
    found: dict[str, Any] = dict(zip(names.split(), node.args[1:], strict=False)) | {
        key: value for key, value in node.kwargs.items() if key in names.split()
    }
    source: Any = node.args[0]
    for key, limit in (("low", "min"), ("high", "max")):
        if found.get(key) is None:
            found[key] = getattr(torch.iinfo(found["dtype"]), limit)
    block = found.pop("block", None)
    if found.get("group"):
        block = [1, found["group"]]
    if block is not None:
        blocks = _blocks([b.meta["val"] if isinstance(b, Node) else b for b in block], source)
        if blocks is None:
            return None
        found |= blocks
    scale = found["scale"]
    picked = isinstance(scale, Node) and scale.target is operator.getitem
    return Affine(source, **found, chosen=scale.args[0] if picked else None)


def _blocks(block: Sequence[Any], source: Node) -> dict[str, int | None] | None:
    """`axis` and `group` of blocks with a scale each."""
    sizes = list(map(key_of, source.meta["val"].shape))
    found = list(map(key_of, block))
    split = [d for d, size in enumerate(sizes) if found[d] != size]
    if not split:
        return {"axis": 0 if sizes and sizes[0] == 1 else None, "group": 0}
    if len(split) == 1 and found[split[0]] == 1:
        return {"axis": split[0], "group": 0}
    if any(b != 1 for b in found[:-1]):
        return None
    if len(sizes) == 2 and found[-1] == sizes[-1]:
        return {"axis": 0, "group": 0}
    return {"axis": None, "group": block[-1]}


def _name(node: Node) -> str:
    return node.target.name().partition(".")[0] if isinstance(node.target, OpOverload) else ""


def _tensor(
    given: float | Node, constant: Callable[[Any], torch.Tensor | None], dtype: torch.dtype
) -> torch.Tensor | None:
    found = constant(given) if isinstance(given, Node) else torch.tensor(given)
    return None if found is None else found.detach().to(dtype)
