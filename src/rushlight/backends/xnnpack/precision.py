"""The arithmetic of calls: floats, or integers by scales that are fixed or chosen at run time."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from torch.fx import Node

from rushlight.ir.quantized_values import affine_of, chooses, dequantizes, quantizes


class ConfigPrecisionType(Enum):
    """The arithmetic of calls."""

    FP32 = 1
    STATIC_QUANT = 2
    DYNAMIC_QUANT = 3


def precision_of(node: Node, is_constant: Callable[[Any], bool]) -> ConfigPrecisionType:
    """The arithmetic of a call.

    Args:
        node: a call of the Edge dialect. One that dequantises a constant counts as its reader.
        is_constant: whether an argument is a constant, or a call that dequantises one.
    """
    if chooses(node):
        return ConfigPrecisionType.DYNAMIC_QUANT
    if dequantizes(node) and is_constant(node):
        return max(
            (precision_of(user, is_constant) for user in node.users),
            key=lambda precision: precision.value,
            default=ConfigPrecisionType.FP32,
        )
    if quantizes(node) or dequantizes(node):
        return _of_scales(node)
    precisions = [
        _of_scales(one) for one in node.all_input_nodes if dequantizes(one) and not is_constant(one)
    ]
    return max(precisions, key=lambda one: one.value, default=ConfigPrecisionType.FP32)


def _of_scales(node: Node) -> ConfigPrecisionType:
    affine = affine_of(node)
    is_dynamic = affine is not None and affine.chosen is not None
    return ConfigPrecisionType.DYNAMIC_QUANT if is_dynamic else ConfigPrecisionType.STATIC_QUANT
