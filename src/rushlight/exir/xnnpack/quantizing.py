"""Which nodes quantise and dequantise, and how: `quantized_decomposed` and torchao's operators.

The operators of torchao (`quantize_affine`) take blocks of any shape. Those are in captured
graphs; in graphs of the Edge dialect rows and groups have operators of `quantized_decomposed`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import has_free_symbols

from rushlight.backends.xnnpack.operator_configs import name_of
from rushlight.ir.quantized_values import chooses, dequantizes, quantizes

IS_IMPLICIT_Q_DQ_TAG = "IS_IMPLICIT_Q_DQ_TAG"

_CHANNELS = ("quantize_per_channel.", "quantize_per_channel_group.")
_ZERO_POINTS = {
    **dict.fromkeys((torch.int8, torch.qint8), (-128, 127)),
    **dict.fromkeys((torch.uint8, torch.quint8), (0, 255)),
    torch.int32: (0, 0),
}
_ZERO_POINTS_OF_4_BITS = (0, 15)


def tag_as_implicit_q_dq(node: Node) -> None:
    """Mark a node that quantises or dequantises as part of the integer calls around it, which a
    backend needs no node of its own for."""
    node.meta[IS_IMPLICIT_Q_DQ_TAG] = True


def is_tagged_as_implicit_q_dq(node: Node) -> bool:
    """Whether `tag_as_implicit_q_dq` marked a node."""
    return bool(node.meta.get(IS_IMPLICIT_Q_DQ_TAG, False))


def is_quant(node: Node) -> bool:
    """Whether a node quantises."""
    return quantizes(node) or _name(node) == "quantize_affine.default"


def is_dequant(node: Node) -> bool:
    """Whether a node dequantises."""
    return dequantizes(node) or _name(node) == "dequantize_affine.default"


def is_qparam(node: Node) -> bool:
    """Whether a node chooses scales and zero points from values."""
    chosen = node.target is not operator.getitem and chooses(node)
    return chosen or _name(node) == "choose_qparams_affine.default"


def is_dynamic_qdq(node: Node) -> bool:
    """Whether a node quantises or dequantises by scales that are chosen at run time."""
    if not _is_qdq(node):
        return False
    args: Sequence[Any] = node.args[1:] if is_affine_qdq(node) else node.args
    picked = args[1:3]
    return all(
        isinstance(one, Node)
        and one.target is operator.getitem
        and is_qparam(one.all_input_nodes[0])
        for one in picked
    )


def is_per_tensor(node: Node) -> bool:
    """Whether a node quantises or dequantises by one scale for all values; torchao's operators,
    whose scales have blocks, do not count."""
    return _is_qdq(node) and "quantize_per_tensor." in _name(node)


def is_per_channel(node: Node) -> bool:
    """Whether each index of a dimension, or each group of weights in a row, has its own scale."""
    return is_per_channel_group(node) or (
        _is_qdq(node) and any(kind in _name(node) for kind in _CHANNELS)
    )


def is_per_token(node: Node) -> bool:
    """Whether each row, the values along the last dimension, has its own scale."""
    if not _is_qdq(node) or not is_affine_qdq(node):
        return _is_qdq(node) and "quantize_per_token." in _name(node)
    block, shape, scales = _blocks(node)
    last = block[-1].meta["val"] if isinstance(block[-1], Node) else block[-1]
    is_row = all(size == 1 for size in block[:-1]) and last == shape[-1]
    return bool(is_row and scales.numel() == math.prod(shape[:-1]))


def is_per_channel_group(node: Node) -> bool:
    """Whether each group of neighbouring weights in a row has its own scale."""
    if not _is_qdq(node) or not is_affine_qdq(node):
        return _is_qdq(node) and "quantize_per_channel_group." in _name(node)
    block, shape, scales = _blocks(node)
    if has_free_symbols(shape) or has_free_symbols(scales.shape):
        return False  # weights are constants
    is_group = len(block) == 2 and block[0] == 1
    return bool(is_group and math.prod(shape) == block[1] * scales.numel())


def is_affine_qdq(node: Node) -> bool:
    """Whether a node is torchao's operator that quantises or dequantises blocks."""
    return _name(node) in ("quantize_affine.default", "dequantize_affine.default")


def extract_qdq_affine_op_args_for_decomposed_ops(node: Node) -> Any:
    """The arguments of torchao's operator in the order of `quantized_decomposed`'s.

    Args:
        node: a call of `quantize_affine` or `dequantize_affine`.

    Returns:
        [input, scale, zero point, lowest integer, highest integer, dtype, size of groups if it has
        groups, last argument]; (None, None) if its integers are not int8, or for another call.
    """
    if not is_affine_qdq(node) or node.args[4] != torch.int8:
        return None, None
    source, block, scale, zero_point, dtype = node.args[:5]
    limits = node.args[5:7] if len(node.args) > 6 else (-128, 127)
    group = [block[-1]] if is_per_channel_group(node) else []  # type: ignore[index]
    return [source, scale, zero_point, *limits, dtype, *group, node.args[-1]]


def is_tensor_subnormal(tensor: torch.Tensor) -> torch.Tensor:
    """For each number whether it is zero, or positive and below the normal numbers of its dtype."""
    return (tensor >= 0) & (tensor < torch.finfo(tensor.dtype).smallest_normal)


def validate_quant_scales(scales: float | torch.Tensor) -> None:
    """Check that XNNPACK computes with these scales.

    Raises:
        ValueError: one is not finite, or not a normal number.
    """
    given = torch.tensor([scales]) if isinstance(scales, float) else scales
    bad = ~given.isfinite() | is_tensor_subnormal(given)
    _check(given, bad, "scale", "finite normal numbers: give the observer an eps")


def validate_quant_zeropoints(zp: float | torch.Tensor, dtype: torch.dtype, is_4bit: bool) -> None:
    """Check that XNNPACK computes with these zero points.

    Args:
        zp: one zero point, or several.
        dtype: of the integers: int8, uint8 or int32.
        is_4bit: whether they are int8 that hold 4 bits.

    Raises:
        ValueError: one is out of range, or the dtype is another.
    """
    if dtype not in _ZERO_POINTS:
        allowed = ", ".join(str(one) for one in _ZERO_POINTS)
        raise ValueError(f"dtype={dtype} is not one of XNNPACK's integers: give one of {allowed}")
    low, high = _ZERO_POINTS[dtype]
    if is_4bit and dtype in (torch.int8, torch.qint8):
        low, high = _ZERO_POINTS_OF_4_BITS
    given = zp if isinstance(zp, torch.Tensor) else torch.tensor([zp])
    bad = (given < low) | (given > high)
    _check(given, bad, "zero point", f"numbers from {low} to {high} for {dtype}")


def _check(given: torch.Tensor, bad: torch.Tensor, kind: str, allowed: str) -> None:
    if bad.any():
        place = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"the {kind} at index {place} is {given[place].item()}; XNNPACK takes {allowed}"
        )


def _is_qdq(node: Node) -> bool:
    return is_quant(node) or is_dequant(node)


def _name(node: Node) -> str:
    return name_of(node.target) if node.op == "call_function" else ""


def _blocks(node: Node) -> tuple[Any, torch.Size, torch.Tensor]:
    """The sizes of a block, those of the values, and the scales of a call of torchao's operator."""
    source, block, scale = node.args[:3]
    return block, source.meta["val"].shape, scale.meta["val"]  # type: ignore[union-attr]
