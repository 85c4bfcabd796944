"""GPTQ: 4-bit weights rounded so that a layer's results, not its weights, change least.

Columns are rounded one after the other, and the later columns compensate the error of each, as far
as they are correlated in the layer's inputs. Source: Frantar et al., "GPTQ:
Accurate Post-Training Quantization for Generative Pre-trained Transformers" (2022).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

# Relative to the mean of the diagonal. The paper has 0.01 for 128 texts of 2048 tokens; the data of
# a user are often a thousandth of that, so correlations are estimated less well.
_DAMPING = 0.1


def rounded(
    weight: torch.Tensor,
    moments: torch.Tensor,
    group_size: int,
    scales_of: Callable[[torch.Tensor], torch.Tensor],
    limits: tuple[int, int],
) -> tuple[torch.Tensor, torch.Tensor]:
    """The integers and scales of a matrix.

    Args:
        weight: float32[out, in].
        moments: float32[in, in], the sum of the products of the inputs with each other.
        group_size: the number of weights of a row with one scale; divides `in`.
        scales_of: computes the scales, [out], of a group [out, group_size].
        limits: the least and the greatest integer.

    Returns:
        Integers as float32[out, in], and scales, float32[out, in/group_size].
    """
    left = weight.clone()
    factor = _factor(moments)
    numbers, scales = torch.zeros_like(left), []
    for start in range(0, left.shape[1], group_size):
        stop = start + group_size
        scale = scales_of(left[:, start:stop])
        scales.append(scale)
        errors = torch.zeros_like(left[:, start:stop])
        for at in range(start, stop):
            column = left[:, at]
            number = torch.round(column / scale).clamp(*limits)
            numbers[:, at] = number
            error = (column - number * scale) / factor[at, at]
            left[:, at:stop] -= error.unsqueeze(1) * factor[at, at:stop]
            errors[:, at - start] = error
        left[:, stop:] -= errors @ factor[start:stop, stop:]
    return numbers, torch.stack(scales, 1)


def _factor(moments: torch.Tensor) -> torch.Tensor:
    """The upper Cholesky factor of the moments' inverse; always zero inputs have no effect."""
    moments = moments.double().clone()
    diagonal = moments.diagonal()
    diagonal[diagonal == 0] = 1
    diagonal += _DAMPING * diagonal.mean()
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(moments))
    factor: torch.Tensor = torch.linalg.cholesky(inverse, upper=True)
    return factor.float()
