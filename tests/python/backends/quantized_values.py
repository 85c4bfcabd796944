"""Quantised values and weights of small functions, spelled as torchao's pt2e does."""

from __future__ import annotations

import torch
import torch.ao.quantization.fx._decomposed  # defines the operators

quantized = torch.ops.quantized_decomposed
LIMITS = -128, 127, torch.int8


def rounded(x: torch.Tensor, scale: float = 0.5) -> torch.Tensor:
    """Quantised and dequantised, with a zero point of 0."""
    integers = quantized.quantize_per_tensor(x, scale, 0, *LIMITS)
    return quantized.dequantize_per_tensor(integers, scale, 0, *LIMITS)


def weights(
    integers: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor, axis: int = 1
) -> torch.Tensor:
    """Dequantised, with a scale for each column."""
    return quantized.dequantize_per_channel(integers, scales, zeros, axis, -127, 127, torch.int8)


COLUMNS = {
    "w": torch.ones(4, 3, dtype=torch.int8),
    "s": torch.full((3,), 0.25),
    "z": torch.zeros(3, dtype=torch.int64),
}
"""Weights of 4 x 3, their scales and zero points."""
