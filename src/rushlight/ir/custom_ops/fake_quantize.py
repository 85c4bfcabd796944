"""`rushlight::fake_quantize_groups`: numbers rounded to 8 bits in groups of neighbours.

The engine computes products of such rows with quantised weights in integers. For other backends the
operator is decomposed.
"""

from __future__ import annotations

import torch
from torch._ops import OpOverload

SIZES = (32, 16)
"""The elements of a group, the best first."""

_LEAST = 2.0**-100
_LIB = torch.library.Library("rushlight", "FRAGMENT")


def rounded(x: torch.Tensor, group_size: int) -> torch.Tensor:
    """Each number rounded to an integer from -127 to 127 times the scale of its group.

    The scale maps the greatest magnitude of a group to 127. A group with a number that is not
    finite becomes NaN.

    Args:
        x: float32 [..., width].
        group_size: divides the width.
    """
    groups = x.unflatten(-1, (-1, group_size))
    factors = 127 / groups.abs().amax(-1, keepdim=True).clamp(min=_LEAST)
    numbers: torch.Tensor = (groups * factors).round() * (1 / factors)
    return numbers.flatten(-2)


def _like(x: torch.Tensor, group_size: int) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _rounded_out(x: torch.Tensor, group_size: int, *, out: torch.Tensor) -> torch.Tensor:
    return out.copy_(rounded(x, group_size))


_ARGUMENTS = "Tensor x, int group_size"
_LIB.define(f"fake_quantize_groups({_ARGUMENTS}) -> Tensor")
_LIB.define(f"fake_quantize_groups.out({_ARGUMENTS}, *, Tensor(a!) out) -> Tensor(a!)")
_LIB.impl("fake_quantize_groups", rounded, "CompositeExplicitAutograd")
_LIB.impl("fake_quantize_groups.out", _rounded_out, "CompositeExplicitAutograd")
torch.library.register_fake("rushlight::fake_quantize_groups", _like, lib=_LIB)

fake_quantize_groups: OpOverload = torch.ops.rushlight.fake_quantize_groups.default
"""The operator."""
