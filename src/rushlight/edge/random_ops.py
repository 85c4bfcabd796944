"""Rules for random operators, in terms of those with kernels, which draw in eager's order.

Some of torch's own rules, which are the same for all devices, draw other numbers than eager; they
are replaced here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten

# Kept whole, because torch's rules draw other numbers than eager.
RANDOM_KEPT: tuple[OpOverload, ...] = (
    aten.bernoulli.default,
    aten.bernoulli.Tensor,
    aten.native_dropout.default,
    aten.multinomial.default,
)


def _normal(mean: float, std: float, shape: Any, like: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = aten.normal.float_float(
        mean, std, shape, dtype=like.dtype, device=like.device
    )
    return result


def _normal_functional(
    self: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> torch.Tensor:
    return _normal(mean, std, self.shape, self)


def _normal_tensor_float(
    mean: torch.Tensor, std: float = 1.0, *, generator: Any = None
) -> torch.Tensor:
    return _normal(0.0, std, mean.shape, mean) + mean


def _normal_float_tensor(mean: float, std: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    return _normal(0.0, 1.0, std.shape, std) * std + mean


def _normal_tensor_tensor(
    mean: torch.Tensor, std: torch.Tensor, *, generator: Any = None
) -> torch.Tensor:
    shape = torch.broadcast_shapes(mean.shape, std.shape)
    return _normal(0.0, 1.0, shape, mean) * std + mean


def _random_to(self: torch.Tensor, to: int, *, generator: Any = None) -> torch.Tensor:
    result: torch.Tensor = aten.randint.low(0, to, self.shape, dtype=self.dtype, device=self.device)
    return result


def _rrelu_with_noise(
    self: torch.Tensor,
    noise: torch.Tensor,
    lower: float = 0.125,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a number per element and use the first ones, in order, for the non-positive elements.

    Eager draws only for those elements, so both use the same numbers.
    """
    if not training:
        return aten.leaky_relu.default(self, (lower + upper) / 2), noise
    below = self <= 0
    draws = torch.rand(self.numel(), dtype=torch.float64) * (upper - lower) + lower
    number = below.reshape(-1).cumsum(0) - 1
    slopes = draws[number.clamp(min=0)].reshape(self.shape).to(self.dtype)
    new = torch.where(below, slopes, 1.0)
    return self * new, new


RANDOM_DECOMPOSITIONS: dict[OpOverload, Callable[..., Any]] = {
    aten.normal_functional.default: _normal_functional,
    aten.normal.Tensor_float: _normal_tensor_float,
    aten.normal.float_Tensor: _normal_float_tensor,
    aten.normal.Tensor_Tensor: _normal_tensor_tensor,
    aten.random.to: _random_to,
    aten.rrelu_with_noise_functional.default: _rrelu_with_noise,
}
