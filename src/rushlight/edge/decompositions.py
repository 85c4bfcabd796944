"""Which operators are decomposed on the way to Core ATen, and into what.

The table is torch's own, with three kinds of exception: operators that have a kernel are kept
whole, some that have none anywhere are decomposed further, and attention is decomposed into fewer
operators than torch's generic rule makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch._ops import OpOverload

from rushlight.edge.affine_ops import affine_decompositions
from rushlight.edge.index_ops import INDEX_DECOMPOSITIONS
from rushlight.edge.linalg_ops import LINALG_DECOMPOSITIONS
from rushlight.edge.network_ops import NETWORK_DECOMPOSITIONS
from rushlight.edge.random_ops import RANDOM_DECOMPOSITIONS, RANDOM_KEPT
from rushlight.edge.rules import RULES
from rushlight.ir.torch_release import short_decomposition_setup

aten = torch.ops.aten

# Overloads that take a size or factors, and the overload with the computed size that replaces each.
UPSAMPLING: dict[OpOverload, OpOverload] = {
    aten.upsample_nearest1d.vec: aten.upsample_nearest1d.default,
    aten.upsample_nearest3d.vec: aten.upsample_nearest3d.default,
    aten._upsample_nearest_exact1d.vec: aten._upsample_nearest_exact1d.default,
    aten._upsample_nearest_exact2d.vec: aten._upsample_nearest_exact2d.default,
    aten._upsample_nearest_exact3d.vec: aten._upsample_nearest_exact3d.default,
    aten.upsample_linear1d.vec: aten.upsample_linear1d.default,
    aten.upsample_trilinear3d.vec: aten.upsample_trilinear3d.default,
    aten.upsample_bicubic2d.vec: aten.upsample_bicubic2d.default,
    aten._upsample_bilinear2d_aa.vec: aten._upsample_bilinear2d_aa.default,
    aten._upsample_bicubic2d_aa.vec: aten._upsample_bicubic2d_aa.default,
}
# Kept whole: each has a kernel here and in ExecuTorch, and its decomposition is slower.
KEPT: tuple[OpOverload, ...] = (
    aten.linear.default,
    aten.upsample_nearest2d.vec,
    aten.upsample_nearest2d.default,
    aten.upsample_bilinear2d.vec,
    aten.upsample_bilinear2d.default,
    aten.pixel_shuffle.default,
    aten.pixel_unshuffle.default,
    aten.glu.default,
    aten._adaptive_avg_pool2d.default,
    aten.leaky_relu.default,
    aten.elu.default,
    aten.hardtanh.default,
    *UPSAMPLING.values(),
)
# Core ATen operators that no runtime has a kernel for, although torch knows a rule for them.
ALSO_DECOMPOSED: tuple[OpOverload, ...] = (
    aten.addmv.default,
    aten.dist.default,
    aten.linalg_vector_norm.default,
)


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Attention as two batched products around one softmax.

    A row whose keys are all masked gives zeros, as in eager: its scores are made finite before the
    softmax, and the masked probabilities are set to zero after it.
    """
    if enable_gqa:
        groups = query.size(-3) // key.size(-3)
        key = key.repeat_interleave(groups, -3)
        value = value.repeat_interleave(groups, -3)
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    if is_causal:
        lengths = (query.size(-2), key.size(-2))
        attn_mask = torch.ones(lengths, dtype=torch.bool, device=query.device).tril()
    scores = torch.matmul(query * factor, key.transpose(-2, -1))
    if attn_mask is None:
        return torch.matmul(torch.dropout(torch.softmax(scores, -1), dropout_p, True), value)
    lowest = torch.finfo(scores.dtype).min
    if attn_mask.dtype == torch.bool:
        blocked = torch.logical_not(attn_mask)
        scores = torch.where(attn_mask, scores, lowest)
    else:
        blocked = attn_mask == -math.inf
        scores = torch.clamp(scores + attn_mask, min=lowest)
    weights = torch.softmax(scores, -1)
    if not is_causal:  # under a causal mask every row keeps its first key
        weights = torch.where(blocked, 0.0, weights)
    return torch.matmul(torch.dropout(weights, dropout_p, True), value)


def linear_of_vector(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> Any:
    """`linear` of a vector, as of a matrix with one row: ExecuTorch's kernel takes no vector."""
    if input.dim() != 1:
        return NotImplemented
    return torch.ops.aten.linear.default(input.unsqueeze(0), weight, bias).squeeze(0)


def upsampling(target: OpOverload) -> Callable[..., torch.Tensor]:
    """The rule that rewrites a ``.vec`` overload into `target`, which takes sizes and factors."""

    def rule(input: torch.Tensor, output_size: Sequence[int] | None, *rest: Any) -> torch.Tensor:
        *align_corners, factors = rest
        spatial = input.shape[2:]
        if output_size is None:
            # A whole factor keeps the size an integer expression.
            whole = [int(f) if float(f).is_integer() else f for f in factors]
            output_size = [torch.sym_int(s * f) for s, f in zip(spatial, whole, strict=True)]
        scales = factors if factors is not None else [None] * len(spatial)
        return target(input, output_size, *align_corners, *scales)  # type: ignore[no-any-return]

    return rule


def angle(self: torch.Tensor) -> torch.Tensor:
    """The argument of a complex number; for a real number 0 or pi."""
    if self.is_complex():
        parts = torch.view_as_real(self)
        return torch.atan2(parts.select(-1, 1), parts.select(-1, 0))
    numbers = self if self.is_floating_point() else self.to(torch.get_default_dtype())
    phase = torch.where(numbers < 0, math.pi, 0.0).to(numbers.dtype)
    return torch.where(torch.isnan(numbers), numbers, phase)


def polar(abs: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """The complex numbers with absolute values `abs` and arguments `angle`."""
    return torch.complex(abs * torch.cos(angle), abs * torch.sin(angle))


def new_empty_strided(
    self: torch.Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    **elsewhere: Any,
) -> torch.Tensor:
    """Uninitialised memory; the strides are ignored because all tensors of a program are dense."""
    return torch.empty(size, dtype=dtype or self.dtype)


# Complex operators that torch has no rule for. In torch, conjugate and negative are views with a
# flag; here they are computed.
COMPLEX: dict[OpOverload, Callable[..., torch.Tensor]] = {
    aten.angle.default: angle,
    aten.polar.default: polar,
    aten._conj.default: lambda self: aten._conj_physical.default(self),
    aten._neg_view.default: lambda self: aten.neg.default(self),
}


def copy(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """The value of `self` after `self.copy_(src)`.

    Torch's decomposition would use `src` itself as the buffer's new value, without the conversion
    to the buffer's dtype and without the broadcast.
    """
    return src.to(self.dtype).expand(self.shape)


def decomposition_table(
    keep: Iterable[OpOverload] = (),
    own: Mapping[OpOverload, Callable[..., Any]] | None = None,
) -> dict[OpOverload, Callable[..., Any]]:
    """The table for `ExportedProgram.run_decompositions`.

    Args:
        keep: operators that stay whole besides the ones that always do.
        own: the user's rules, which replace ours, also for operators that stay whole here.
    """
    table: Any = torch.export.default_decompositions()
    table.update(get_decompositions(ALSO_DECOMPOSED))
    table.update(RULES)
    table[aten.scaled_dot_product_attention.default] = scaled_dot_product_attention
    table.update(COMPLEX)
    table.update(NETWORK_DECOMPOSITIONS)
    table.update(affine_decompositions())
    table[aten.new_empty_strided.default] = new_empty_strided
    if hasattr(torch.ops.quantized_decomposed, "convert_element_type"):  # the library is loaded
        convert = torch.ops.quantized_decomposed.convert_element_type.no_fuse
        table[convert] = lambda input, dtype: input.to(dtype)
    table.update({vec: upsampling(target) for vec, target in UPSAMPLING.items()})
    table[aten.copy.default] = copy
    table.update(RANDOM_DECOMPOSITIONS)
    table.update(INDEX_DECOMPOSITIONS)
    table.update(LINALG_DECOMPOSITIONS)
    for target in (*KEPT, *RANDOM_KEPT):
        table.pop(target, None)
    table.update(own or {})
    for target in keep:
        table.pop(target, None)
    with short_decomposition_setup():  # the first question fills torch's table
        if aten.linear.default not in table:  # it has no setdefault of its own
            table[aten.linear.default] = linear_of_vector
    return table  # type: ignore[no-any-return]
