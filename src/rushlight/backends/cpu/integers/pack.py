"""Integer weights packed for the engine's kernels, and the parameters of their accumulators.

Accumulators are int32: `start + Σ byte * weight`, where `start` is the bias minus the contribution
of the bytes' zero point. A float32 multiplier for each column converts them to the result's bytes
or numbers; it is computed in float32, in the same order of operations as in XNNPACK.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from rushlight.backends.cpu.graph.panels import PANEL
from rushlight.backends.cpu.integers.facts import GREATEST, Quantization, Weights
from rushlight.errors import Code, ExportError
from rushlight.ir.mapped_weights import Filled, rows_at_once, were_read
from rushlight.schema.cpu_engine import ConvolutionKind

_TERMS = 4  # that one instruction multiplies and adds
_HALF_TERMS = 8  # of 4 bits
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Sums:
    """The start values of accumulators, and the multipliers that convert them to results.

    Attributes:
        weights: int8, as they are stored.
        start: int32 [columns].
        multipliers: float32 [columns].
    """

    weights: torch.Tensor
    start: torch.Tensor
    multipliers: torch.Tensor


def sums(
    weights: Weights,
    bias: torch.Tensor | None,
    quantization: Quantization,
    result: Quantization | None,
    name: str,
) -> Sums:
    """The parameters of a product or convolution.

    Args:
        weights: with one scale for each column.
        bias: float32 [columns].
        quantization: how the bytes that are multiplied stand for numbers.
        result: how the bytes of the result do; None if it is float32.
        name: of the call, for errors.

    Raises:
        ExportError: if a scale is too small to compute with.
    """
    unit = torch.tensor(quantization.scale) * weights.scales[:, 0]
    multipliers = unit if result is None else unit / torch.tensor(result.scale)
    tiny = torch.finfo(torch.float32).tiny
    bad = torch.nonzero((unit < tiny) | (multipliers < tiny) | ~multipliers.isfinite())
    if len(bad):
        raise ExportError(
            f"the scales of {name} are too small to compute with in float32: channel "
            f"{int(bad[0])} of its weights has {float(weights.scales[bad[0], 0]):.3g}, its input "
            f"{quantization.scale:.3g}; calibrate with data in which the layer is used",
            code=Code.INVALID_ARGUMENT,
            where=name,
        )
    flat = weights.data.reshape(len(weights.data), -1).double()
    shift = torch.zeros(len(flat)) if bias is None else bias.double() / unit.double()
    # A channel of weights near zero has a tiny scale, in units of which its bias may exceed an
    # int32. Its weights are then rounded more coarsely: beside such a bias they hardly count.
    most = shift.abs() + GREATEST * flat.abs().sum(1)
    factor = torch.exp2(torch.ceil(torch.log2(most / _MAX_INT32)).clamp(min=0))
    flat = torch.round(flat / factor[:, None])
    start = torch.round(shift / factor) - quantization.zero_point * flat.sum(1)
    return Sums(
        flat.to(torch.int8).reshape(weights.data.shape),
        start.to(torch.int32),
        multipliers * factor.float(),
    )


def columns(vector: torch.Tensor) -> torch.Tensor:
    """A number for each column, filled up with zeros to whole panels."""
    return functional.pad(vector, (0, -vector.shape[-1] % PANEL)).contiguous()


def panels(matrix: torch.Tensor) -> torch.Tensor:
    """An int8 matrix [depth, columns] in panels of 16 columns, depth filled up to a multiple of 4.

    Returns:
        bytes: element (i, j) at (j // 16) * depth * 16 + (i // 4) * 64 + (j % 16) * 4 + i % 4.
    """
    return _packed(matrix, _TERMS, matrix.dtype)


def half_panels(matrix: torch.Tensor) -> torch.Tensor:
    """A matrix [depth, columns] of numbers from -8 to 7 as half bytes, in two's complement.

    Returns:
        bytes, 64 for eight terms of 16 columns: byte (j % 16) * 4 + i has term i in its low half
        and term i + 4 in its high one. Depth is filled up to a multiple of 8 with zeros.
    """
    return _packed(matrix, _HALF_TERMS, torch.uint8)


def _packed(matrix: torch.Tensor, terms: int, dtype: torch.dtype) -> torch.Tensor:
    """Panels with four bytes for so many terms of a column, some panels at a time."""
    depth, columns = matrix.shape
    groups = -(-depth // terms)
    made = Filled([groups * _TERMS * -(-columns // PANEL) * PANEL], dtype)
    for part in matrix.split(-(-rows_at_once(depth) // PANEL) * PANEL, 1):
        numbers = _interleaved(part, terms)  # [panels, groups, 16, terms]
        made.add(numbers if terms == _TERMS else _in_halves(numbers))
    return made.tensor


def _in_halves(numbers: torch.Tensor) -> torch.Tensor:
    bits = numbers.to(torch.uint8) & 15
    return bits[..., :_TERMS] | bits[..., _TERMS:] << 4


def _interleaved(matrix: torch.Tensor, terms: int) -> torch.Tensor:
    """A matrix as [panels, depth / terms, 16, terms], filled up with zeros."""
    depth, width = matrix.shape
    fill = (0, -width % PANEL, 0, -depth % terms)
    padded = functional.pad(matrix, fill) if any(fill) else matrix  # filling nothing in copies, too
    parts = padded.reshape(-1, terms, padded.shape[1] // PANEL, PANEL)
    return parts.permute(2, 0, 3, 1).contiguous()


def convolution(weight: torch.Tensor, groups: int, kind: ConvolutionKind) -> torch.Tensor:
    """The int8 weights of a convolution over two dimensions.

    Args:
        weight: [out, in / groups, y, x].
        groups: as torch has it.
        kind: DENSE or DEPTHWISE.

    Returns:
        bytes. Dense: panels for each group, with rows (y, x, in), where the channels of each tap
        are filled up to a multiple of 4. Depthwise: [y, x, out], filled up to whole panels.
    """
    taps = weight.permute(2, 3, 1, 0)  # [y, x, in / groups, out]
    if kind is ConvolutionKind.DEPTHWISE:
        return columns(taps.reshape(-1, weight.shape[0])).reshape(-1)
    filled = functional.pad(taps, (0, 0, 0, -weight.shape[1] % _TERMS))
    rows = filled.reshape(-1, weight.shape[0])
    return torch.cat([panels(part) for part in rows.chunk(groups, 1)])


def scales_of(weights: Weights) -> torch.Tensor:
    """The scales of weights: float32 [columns]; with groups of terms [groups, 16] for each panel,
    in bfloat16 or float16 if that loses nothing."""
    groups = weights.scales.shape[1]
    if groups == 1:
        return columns(weights.scales[:, 0])
    scales = weights.scales
    for half in (torch.bfloat16, torch.float16):
        parts = scales.split(rows_at_once(4 * groups))
        if all(torch.equal(part.to(half).float(), part) for part in parts):
            scales = scales.to(half)
            break
    # Rows that fill the last panel up are zero.
    filled = functional.pad(scales, (0, 0, 0, -len(scales) % PANEL))
    return filled.reshape(-1, PANEL, groups).transpose(1, 2).contiguous().reshape(-1)


def shares_of(weights: Weights) -> torch.Tensor:
    """What a zero point of 1 in rows that are quantised at run time adds to each column: the int32
    sum of its weights, or with groups the float32 sum of scale * weight."""
    groups = weights.scales.shape[1]
    rows = weights.data.reshape(len(weights.data), groups, -1)
    shares = torch.empty(len(rows), dtype=torch.int32 if groups == 1 else torch.float32)
    count = rows_at_once(4 * depth_of(weights))  # torch widens what it sums
    for first in range(0, len(rows), count):
        part = slice(first, first + count)
        sums = rows[part].sum(2, dtype=torch.int32)
        if groups == 1:
            shares[part] = sums[:, 0]
        else:
            shares[part] = (sums.double() * weights.scales[part].double()).sum(1).float()
        were_read(rows[part].nbytes)
    return columns(shares)


def depth_of(weights: Weights) -> int:
    """Terms of each sum."""
    return math.prod(weights.data.shape[1:])
