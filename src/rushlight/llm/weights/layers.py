"""Layers that compute in float32 with weights in half precision or in integers.

Their graphs have the calls that backends look for (docs/quantization.md), so that the weights are
stored as they are here.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch.nn import functional

from rushlight.ir.custom_ops import executorch
from rushlight.ir.custom_ops.fake_quantize import SIZES, fake_quantize_groups
from rushlight.ir.mapped_weights import Filled, rows_at_once, to_file

Tensor = torch.Tensor
executorch.define()
_Q = torch.ops.quantized_decomposed


@dataclass(frozen=True, eq=False)
class QuantizedWeight:
    """The weights of a linear layer or an embedding as integers without zero points.

    They are parameters, which layers share: no call writes them, as one may write a buffer.

    Attributes:
        integers: int8 [rows, depth].
        scales: float32 [rows, groups of neighbouring terms of a row].
        bits: 4 or 8: integers of 4 bits are from -8 to 7.
    """

    integers: Tensor
    scales: Tensor
    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "integers", _parameter(self.integers))
        object.__setattr__(self, "scales", _parameter(self.scales))

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        return (-8, 7) if self.bits == 4 else (-128, 127)

    @property
    def group_size(self) -> int:
        """How many neighbours of a row share a scale; 0 if all do."""
        groups = self.scales.shape[1]
        return self.integers.shape[1] // groups if groups > 1 else 0

    @property
    def shape(self) -> torch.Size:
        """Rows and depth."""
        return self.integers.shape

    def converted(self, dtype: torch.dtype) -> Tensor:
        """The numbers in a floating dtype, made some rows at a time."""
        made = Filled(self.shape, dtype)
        count = rows_at_once(4 * self.shape[1])
        for first in range(0, len(self.integers), count):
            made.add(self[first : first + count].real())
        return made.tensor

    def real(self) -> Tensor:
        """The numbers that the integers stand for."""
        groups = self.integers.unflatten(1, (self.scales.shape[1], -1))
        made: Tensor = (groups * self.scales.unsqueeze(-1)).flatten(1)
        return made

    def to_file(self) -> QuantizedWeight:
        """The same weights in a file, if weights lie in files."""
        return QuantizedWeight(to_file(self.integers), to_file(self.scales), self.bits)

    def __getitem__(self, rows: Tensor | slice) -> QuantizedWeight:
        """Some rows, in an order that may be given."""
        return QuantizedWeight(self.integers[rows], self.scales[rows], self.bits)


def _parameter(tensor: Tensor) -> torch.nn.Parameter:
    """A parameter; layers that are given the same one share it."""
    if isinstance(tensor, torch.nn.Parameter):
        return tensor
    return torch.nn.Parameter(tensor, requires_grad=False)


class StoredLinear(torch.nn.Module):
    """A linear layer whose weight has any floating dtype.

    Args:
        weight: [out, in].
        bias: [out]; None for none.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = _parameter(weight)
        self.bias = None if bias is None else _parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        """x times the transposed weight, plus the bias."""
        return functional.linear(x, self.weight.float(), self.bias)


class QuantizedLinear(torch.nn.Module):
    """A linear layer with weights in integers.

    Args:
        weight: of [out, in].
        bias: [out]; None for none.
        in_groups: whether the rows of inputs, which are quantised at run time to 8 bits, have a
            scale for each group of 32 or 16 neighbours, if these divide the weights' groups.
            Otherwise each row has a scale and a zero point.
    """

    def __init__(
        self, weight: QuantizedWeight, bias: Tensor | None, *, in_groups: bool = False
    ) -> None:
        super().__init__()
        size = weight.group_size or weight.integers.shape[1]
        sizes = [one for one in SIZES if size % one == 0] if in_groups else []
        self._row_group_size = next(iter(sizes), 0)
        self.integers, self.scales = weight.integers, weight.scales
        self.bias = None if bias is None else _parameter(bias)
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        """The product of the dequantised rows and weights, plus the bias."""
        return functional.linear(self._rows(x), self._real(), self.bias)

    def _rows(self, x: Tensor) -> Tensor:
        if self._row_group_size:
            rounded: Tensor = fake_quantize_groups(x, self._row_group_size)
            return rounded
        scales, zeros = _Q.choose_qparams_per_token_asymmetric(x, torch.int8)
        rows = _Q.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        real = _Q.dequantize_per_token(rows, scales, zeros, -128, 127, torch.int8, torch.float32)
        return real  # type: ignore[no-any-return]

    def _real(self) -> Tensor:
        weight, scales = self.integers, self.scales
        groups = scales.shape[1]
        if groups == 1:
            real = _Q.dequantize_per_channel(
                weight, scales.squeeze(1), None, 0, *self.weight.limits, torch.int8
            )
        else:
            size = weight.shape[1] // groups
            real = _Q.dequantize_per_channel_group(
                weight, scales, None, *self.weight.limits, torch.int8, size, torch.float32
            )
        return real  # type: ignore[no-any-return]


class StoredEmbedding(torch.nn.Module):
    """A table whose rows are taken by their numbers, in any floating dtype.

    Args:
        weight: [rows, width].
        factor: what the rows are multiplied by.
    """

    def __init__(self, weight: Tensor, factor: float = 1.0) -> None:
        super().__init__()
        self.weight = _parameter(weight)
        self.factor = factor

    def forward(self, indices: Tensor) -> Tensor:
        """Rows, in float32."""
        rows = functional.embedding(indices, self.weight).float()
        return rows if self.factor == 1 else rows * self.factor


class QuantizedEmbedding(torch.nn.Module):
    """A table of integers whose rows are taken by their numbers.

    Args:
        weight: of [rows, width].
        factor: what the rows are multiplied by.
    """

    def __init__(self, weight: QuantizedWeight, factor: float = 1.0) -> None:
        super().__init__()
        self.integers, self.scales = weight.integers, weight.scales
        self.weight = weight
        self.factor = factor

    def forward(self, indices: Tensor) -> Tensor:
        """Rows, in float32."""
        limits = self.weight.limits
        rows: Tensor = _Q.embedding_byte(self.integers, self.scales, None, *limits, indices)
        return rows if self.factor == 1 else rows * self.factor
