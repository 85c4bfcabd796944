"""Weights rounded to integers: scales with the least squared error."""

from __future__ import annotations

import torch

from rushlight.errors import Code, ExportError
from rushlight.ir.mapped_weights import Filled
from rushlight.llm.weights.layers import QuantizedWeight

Tensor = torch.Tensor
_CLIPS = 24  # the number of scales that are tried for each group
_MOST = 0.5  # of a group's largest weight is clipped by the smallest of these scales
_AT_ONCE = 1 << 18  # elements that are rounded at a time: they stay in a cache


def quantised(
    weight: Tensor | QuantizedWeight, bits: int, group_size: int, name: str
) -> QuantizedWeight:
    """A matrix as integers with a scale for each group of neighbours in a row, or for each row.

    Scales of groups are bfloat16 numbers, which are stored in two bytes. The scale of a group has
    the least squared error among those that use the whole range of the integers or clip a few of
    the largest weights.

    Args:
        weight: [rows, depth].
        bits: 4 or 8.
        group_size: 0 for one scale for each row. If depth is no multiple of it, rows have 8 bits.
        name: of the layer, for messages.

    Raises:
        ExportError: a weight is infinite or NaN.
    """
    rows, depth = weight.shape
    if group_size and depth % group_size:
        bits, group_size = 8, 0
    integers = Filled([rows, depth], torch.int8)
    scales = Filled([rows, depth // group_size if group_size else 1], torch.float32)
    count = max(_AT_ONCE // max(depth, 1), 1)
    for first in range(0, rows, count):
        part = slice(first, first + count)
        real = weight[part].real() if isinstance(weight, QuantizedWeight) else weight[part].float()
        if not bool(torch.isfinite(real).all()):
            raise ExportError(
                f"the weights of {name} have NaN or infinite elements, which no integers stand "
                f"for: mend the model",
                code=Code.INVALID_ARGUMENT,
                where=name,
            )
        groups = real.unflatten(1, (-1, group_size or depth))
        scale = _scales(groups, bits)
        scales.add(scale)
        integers.add(_round(groups, scale, bits))
    return QuantizedWeight(integers.tensor, scales.tensor, bits)


def _scales(groups: Tensor, bits: int) -> Tensor:
    high, low = groups.amax(-1), groups.amin(-1)
    tiny = torch.finfo(torch.bfloat16).tiny
    if bits == 8:
        return (torch.maximum(high, -low) / 127).clamp_min(tiny)
    full = torch.maximum(high / 7, low / -8).clamp_min(tiny)
    best, least = full, torch.full_like(full, torch.inf)
    for clip in range(_CLIPS):
        scale = (full * (1 - _MOST * clip / _CLIPS)).to(torch.bfloat16).float()
        error = _round(groups, scale, bits).mul_(scale.unsqueeze(-1)).sub_(groups)
        error = error.square_().sum(-1)
        best = torch.where(error < least, scale, best)
        least = torch.minimum(error, least)
    return best


def _round(groups: Tensor, scales: Tensor, bits: int) -> Tensor:
    low, high = (-8, 7) if bits == 4 else (-127, 127)
    return (groups / scales.unsqueeze(-1)).round_().clamp_(low, high)
