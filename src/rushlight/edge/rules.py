"""Decompositions for operators that torch has no rule for, or whose rule uses operators without
kernels. Each gives exactly eager's result, and is as fast as a kernel would be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from rushlight.ir.custom_ops.fake_quantize import fake_quantize_groups, rounded

aten = torch.ops.aten


def int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """A product of int8 matrices with int32 sums."""
    return torch.mm(self.to(torch.int32), mat2.to(torch.int32))


def addbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """One product, with the batches side by side in the dimension that is summed over."""
    batches, rows, depth = batch1.shape
    left = batch1.transpose(0, 1).reshape(rows, batches * depth)
    right = batch2.reshape(batches * depth, batch2.shape[2])
    return torch.addmm(self, left, right, beta=beta, alpha=alpha)


def diagonal_scatter(
    self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Put `src` at the diagonal's positions, taken from the diagonal of a tensor of positions."""
    at = torch.arange(self.numel(), device=self.device).reshape(self.shape)
    return _put(self, at.diagonal(offset, dim1, dim2), src)


def as_strided_scatter(
    self: Tensor,
    src: Tensor,
    size: list[int],
    stride: list[int],
    storage_offset: int | None = None,
) -> Tensor:
    """Put `src` at the positions of a strided view of `self`, which is contiguous."""
    at = torch.arange(self.numel(), device=self.device)
    return _put(self, at.as_strided(size, stride, storage_offset or 0), src)


def _put(self: Tensor, positions: Tensor, src: Tensor) -> Tensor:
    flat = self.reshape(-1).index_put((positions.reshape(-1),), src.reshape(-1))
    return flat.reshape(self.shape)


def fmax(self: Tensor, other: Tensor) -> Tensor:
    """The greater of two numbers; if one is NaN, the other."""
    return torch.where((self >= other) | torch.isnan(other), self, other)


def fmin(self: Tensor, other: Tensor) -> Tensor:
    """The smaller of two numbers; if one is NaN, the other."""
    return torch.where((self <= other) | torch.isnan(other), self, other)


def lcm(self: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of integers; 0 if one of them is 0."""
    divisor = torch.gcd(self, other)
    divisor = torch.where(divisor == 0, 1, divisor)
    return torch.abs(torch.div(self, divisor, rounding_mode="trunc") * other)


def ldexp(self: Tensor, other: Tensor) -> Tensor:
    """self * 2 ** other."""
    return torch.mul(self, torch.exp2(other))


def lshift(self: Tensor, other: Any) -> Tensor:
    """`<<` of integers."""
    return torch.bitwise_left_shift(self, other)


def rshift(self: Tensor, other: Any) -> Tensor:
    """`>>` of integers."""
    return torch.bitwise_right_shift(self, other)


def round_decimals(self: Tensor, *, decimals: int) -> Tensor:
    """Round half to even at a power of ten, with the same intermediate roundings as eager."""
    if not self.dtype.is_floating_point or decimals == 0:
        return torch.round(self)
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return torch.round(self / scale) * scale
    return torch.round(self * scale) / scale


_HOLDS_SQUARES = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
}


def std(
    self: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    """The root of the variance, computed in a dtype that holds the square of every number."""
    wide = _HOLDS_SQUARES.get(self.dtype, self.dtype)
    variance = torch.var(self.to(wide), dim, correction=correction, keepdim=keepdim)
    root = torch.sqrt(variance)
    return root if self.is_complex() else root.to(self.dtype)


def std_mean(self: Tensor, dim: list[int] | None = None, **options: Any) -> tuple[Tensor, Tensor]:
    """The root of the variance, and the mean."""
    mean = torch.mean(self, dim or list(range(self.dim())), options.get("keepdim", False))
    return torch.ops.aten.std.correction(self, dim, **options), mean


RULES: dict[OpOverload, Callable[..., Any]] = {
    aten.__lshift__.Scalar: lshift,
    aten.__lshift__.Tensor: lshift,
    aten.__rshift__.Scalar: rshift,
    aten.__rshift__.Tensor: rshift,
    aten._int_mm.default: int_mm,
    aten.addbmm.default: addbmm,
    aten.as_strided_scatter.default: as_strided_scatter,
    aten.diagonal_scatter.default: diagonal_scatter,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten.lcm.default: lcm,
    aten.ldexp.Tensor: ldexp,
    aten.round.decimals: round_decimals,
    aten.std.correction: std,
    aten.std_mean.correction: std_mean,
    fake_quantize_groups: rounded,
}
