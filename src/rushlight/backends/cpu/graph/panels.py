"""Weights in the order in which the engine's kernels read them (cpp/engine/types/panels.h)."""

from __future__ import annotations

import torch
from torch.nn import functional

from rushlight.ir.mapped_weights import Filled, rows_at_once
from rushlight.schema.cpu_engine import ConvolutionKind

PANEL = 16


def panels(matrix: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A matrix [depth, columns] in panels of 16 columns, the last one filled up with zeros.

    Args:
        matrix: the matrix.
        dtype: what its elements are converted to; default: its own.

    Returns:
        a vector: element (i, j) at ((j // 16) * depth + i) * 16 + j % 16.
    """
    depth, columns = matrix.shape
    made = Filled([-(-columns // PANEL) * PANEL * depth], dtype or matrix.dtype)
    for part in matrix.split(-(-rows_at_once(4 * depth) // PANEL) * PANEL, 1):
        fill = -part.shape[1] % PANEL
        padded = functional.pad(part, (0, fill)) if fill else part  # a pad of nothing copies, too
        made.add(padded.reshape(depth, -1, PANEL).transpose(0, 1))
    return made.tensor


def bias(vector: torch.Tensor) -> torch.Tensor:
    """A bias filled up with zeros to whole panels."""
    return functional.pad(vector, (0, -len(vector) % PANEL)).contiguous()


def convolution(weight: torch.Tensor, groups: int, kind: ConvolutionKind) -> torch.Tensor:
    """The weights of a convolution over two dimensions.

    Args:
        weight: [out, in / groups, y, x]; of a transposed one [in, out / groups, y, x].
        groups: as torch has it.
        kind: which kernel reads them.

    Returns:
        a vector. Dense: panels for each group, with rows (y, x, in). Transposed: panels for each
        group, with columns (y, x, out). Depthwise: [y, x, out], filled up to whole panels.
        Winograd: panels of the matrix [in, out] of each product.
    """
    if kind is ConvolutionKind.WINOGRAD:
        return torch.cat([panels(matrix) for matrix in winograd(weight)])
    if kind is ConvolutionKind.TRANSPOSED:
        parts = weight.permute(0, 2, 3, 1).chunk(groups, 0)
        return torch.cat([panels(part.reshape(part.shape[0], -1)) for part in parts])
    rows = weight.permute(2, 3, 1, 0).reshape(-1, weight.shape[0])
    if kind is ConvolutionKind.DEPTHWISE:
        return functional.pad(rows, (0, -rows.shape[1] % PANEL)).contiguous().view(-1)
    return torch.cat([panels(part) for part in rows.chunk(groups, 1)])


# The polynomials of Winograd's algorithm are taken at 0, ±√½, ±√2 and infinity; each row is divided
# by the product of its point's distances to the others (cpp/engine/loops/images/winograd.cpp).
_POINTS = (0.0, 0.5**0.5, -(0.5**0.5), 2**0.5, -(2**0.5))
_DISTANCES = (1.0, -1.5, -1.5, 6.0, 6.0)


def winograd(weight: torch.Tensor) -> torch.Tensor:
    """The values of 3 by 3 taps at 6 by 6 points.

    Args:
        weight: [out, in, 3, 3].

    Returns:
        [36, in, out], computed in float64.
    """
    rows = [[p**k / d for k in range(3)] for p, d in zip(_POINTS, _DISTANCES, strict=True)]
    at_points = torch.tensor([*rows, [0, 0, 1]], dtype=torch.float64)
    values = torch.einsum("ya,oiab,xb->yxio", at_points, weight.double(), at_points)
    return values.reshape(36, weight.shape[1], weight.shape[0]).to(weight.dtype)
