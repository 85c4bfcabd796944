"""Batch norm: folded into the weights before it, or as separate nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.elementwise import binary
from rushlight.backends.xnnpack.graph import NHWC, Value, identity
from rushlight.backends.xnnpack.operator_facts import COMPUTED, Operator, arguments, used_results
from rushlight.partition.operators import needs_constants, val_of
from rushlight.schema import xnnpack as fb

aten = torch.ops.aten

NO_TRANSFORM = {
    "kernel_height": 1,
    "kernel_width": 1,
    "subsampling_height": 1,
    "subsampling_width": 1,
    "dilation_height": 1,
    "dilation_width": 1,
}


@dataclass(frozen=True)
class Norm:
    """A batch norm with its statistics: x * scale + shift, for each channel.

    Attributes:
        node: the call.
        scale, shift: float64 [channels].
    """

    node: Node
    scale: torch.Tensor
    shift: torch.Tensor

    @classmethod
    def of(cls, b: Builder, node: Node) -> Norm:
        """The scale and shift of a call."""
        args = arguments(node)
        mean, variance = (_double(b, args[name]) for name in ("running_mean", "running_var"))
        assert mean is not None and variance is not None
        scale = torch.rsqrt(variance + args["eps"])
        weight, bias = (_double(b, args[name]) for name in ("weight", "bias"))
        scale = scale if weight is None else scale * weight
        shift = -mean * scale
        return cls(node, scale, shift if bias is None else shift + bias)

    def folded(
        self, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights [channels, …] and a bias that include the norm of their result."""
        scale = self.scale.reshape(-1, *[1] * (weight.dim() - 1))
        shift = self.shift if bias is None else self.shift + bias.double() * self.scale
        return (weight.double() * scale).float(), shift.float()


def _double(b: Builder, node: Any) -> torch.Tensor | None:
    data = b.data(node)
    return None if data is None else data.double()


def norm_after(b: Builder, node: Node) -> Norm | None:
    """The batch norm that is the only user of a call, if its channels are those of the weights."""
    if len(node.users) != 1:
        return None
    [user] = node.users
    is_norm = user.target is aten._native_batch_norm_legit_no_training.default
    if not is_norm or (node.target is aten.linear.default and val_of(node).dim() != 2):
        return None
    return Norm.of(b, user)


def _batch_norm(b: Builder, node: Node) -> list[Value]:
    norm = Norm.of(b, node)
    value = b.value(node.args[0])
    dtype = val_of(node.args[0]).dtype
    scale, shift = norm.scale.float(), norm.shift.float()
    if value.rank == 4 and (b.has_order(value, NHWC) or dtype != torch.float32):
        channels = len(scale)
        images = b.images(value)
        operation = fb.DepthwiseConv2d(
            **NO_TRANSFORM, group_input_channels=1, group_output_channels=1, groups=channels
        )
        stored = b.emit_one(
            *(operation, images.dims, b.elements(node)),
            input1_id=images,
            filter_id=b.constant(scale.reshape(1, 1, 1, channels)),
            bias_id=b.constant(shift),
        )
        return [b.from_images(stored, value.shape)]
    shape = [1, len(scale), *[1] * (value.rank - 2)]
    factor, term = (
        Value(b.constant(t.to(dtype).reshape(shape)), tuple(shape), identity(len(shape)))
        for t in (scale, shift)
    )
    return [binary(b, node, fb.Add(), [binary(b, node, fb.Multiply(), [value, factor]), term])]


def _why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if used_results(node) - {0}:
        return "its statistics are used, which XNNPACK does not compute"
    if val_of(node.args[0]).dim() < 2:
        return "its input has fewer than 2 dimensions, and so no channels"
    return needs_constants("weight", "bias", "running_mean", "running_var", because=COMPUTED)(
        node, is_constant
    )


OPERATORS = {
    aten._native_batch_norm_legit_no_training.default: Operator(_batch_norm, _why_not),
}
