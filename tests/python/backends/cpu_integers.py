"""A payload's integer nodes in plain torch: int64 sums, and XNNPACK's requantisation in float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rushlight.ir.spec import SCALAR_TYPES
from rushlight.partition import LoweredBackendModule
from rushlight.schema import cpu_engine as fb

_DTYPES = {kind: dtype for dtype, kind in SCALAR_TYPES.items()}
_PANEL = 16


class Reference:
    """Runs a delegate with fixed sizes whose nodes copy or compute integers.

    Args:
        part: the delegate.
    """

    def __init__(self, part: LoweredBackendModule) -> None:
        self._graph = fb.unpack(part.processed_bytes)
        store = part.named_data_store_output
        assert store is not None
        buffers = {key: store.buffers[entry.buffer_index] for key, entry in store.pte_data.items()}
        self._constants = [_bytes(buffers[constant.key]) for constant in self._graph.constants]

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        graph = self._graph
        outputs = {v.index: v for v in graph.values if v.place is fb.Place.OUTPUT}
        self._memory = {
            fb.Place.INPUT: [_bytes(x.contiguous().numpy().tobytes()) for x in inputs],
            fb.Place.CONSTANT: self._constants,
            fb.Place.SCRATCH: [torch.full((graph.scratch_size,), 0xA5, dtype=torch.uint8)],
            fb.Place.OUTPUT: [torch.zeros(_size(v), dtype=torch.uint8) for v in outputs.values()],
        }
        for node in graph.nodes:
            operands = [None if i < 0 else self._view(graph.values[i]) for i in node.inputs]
            results = [self._view(graph.values[i]) for i in node.outputs]
            # Read before the node runs: its result may be in the same memory.
            added = getattr(node.operation, "residual", None)
            residual = None if added is None else self._view(graph.values[added.value]).clone()
            _COMPUTE[type(node.operation)](node.operation, operands, results)
            if residual is not None:
                _add(added.sum, residual, results[0])
        return [self._view(outputs[i]).clone() for i in sorted(outputs)]

    def _view(self, value: fb.Value) -> Tensor:
        index = 0 if value.place is fb.Place.SCRATCH else value.index
        memory = self._memory[value.place][index][value.offset :]
        dtype = _DTYPES[value.dtype]
        whole = memory[: len(memory) // dtype.itemsize * dtype.itemsize]
        return whole.view(dtype).as_strided(value.sizes, value.strides)


def _bytes(data: Any) -> Tensor:
    return torch.from_numpy(np.frombuffer(bytes(data), dtype=np.uint8).copy())


def _size(value: fb.Value) -> int:
    return math.prod(value.sizes) * _DTYPES[value.dtype].itemsize


def _convert(operation: fb.Convert, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    [x], [out] = inputs, outputs
    if out.dtype == torch.float32:
        out.copy_((x.int() - operation.zero_point).float() * operation.scale)
    elif x.dtype == torch.float32:
        out.copy_((torch.round(x * (1 / operation.scale)) + operation.zero_point).clamp(0, 255))
    else:
        assert {x.dtype, out.dtype} == {torch.int8, torch.uint8}
        out.view(torch.uint8).copy_(x.view(torch.uint8) ^ 0x80)


def _copy(operation: fb.Copy, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    assert inputs[0].dtype == outputs[0].dtype
    outputs[0].copy_(inputs[0])


def _lookup(operation: fb.Lookup, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    outputs[0].copy_(inputs[1][inputs[0].long()])


# --- sums of products -----------------------------------------------------------------------------


def _requantized(sums: Tensor, multiplier: Any, to: fb.Requantize) -> Tensor:
    assert bool((sums.abs() < 2**31).all())
    return (torch.round(sums.float() * multiplier) + to.zero_point).clamp(to.low, to.high)


def _finished(operation: Any, sums: Tensor, multipliers: Tensor, out: Tensor) -> None:
    assert operation.epilogue is None and (out.dtype == torch.uint8) == (
        operation.requantize is not None
    )
    if operation.requantize is None:
        out.copy_(sums.float() * multipliers)
    else:
        out.copy_(_requantized(sums, multipliers, operation.requantize))


def _unpacked(panels: Tensor, depth: int, columns: int) -> Tensor:
    """The matrix [depth, columns] in packed bytes, element by element as in the schema."""
    rows = -(-depth // 4) * 4
    i, j = torch.arange(depth)[:, None], torch.arange(columns)[None]
    return panels[(j // _PANEL) * rows * _PANEL + (i // 4) * 64 + (j % _PANEL) * 4 + i % 4].long()


def _halves(panels: Tensor, depth: int, columns: int) -> Tensor:
    """The matrix in packed half bytes."""
    rows = -(-depth // 8) * 8
    i, j = torch.arange(depth)[:, None], torch.arange(columns)[None]
    at = (j // _PANEL) * rows * _PANEL // 2 + (i // 8) * 64 + (j % _PANEL) * 4 + i % 4
    pairs = panels.view(torch.uint8)[at].long()
    halves = torch.where(i % 8 < 4, pairs & 15, pairs >> 4)
    return torch.where(halves > 7, halves - 16, halves)


def _product(operation: fb.QuantizedProduct, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    [a, panels, start, multipliers], [out] = inputs, outputs
    columns = out.shape[1]
    assert not start[columns:].any() and len(start) % _PANEL == 0
    sums = a.long() @ _unpacked(panels, a.shape[1], columns) + start[:columns].long()
    _finished(operation, sums, multipliers[:columns], out)


def _convolution(
    operation: fb.QuantizedConvolution, inputs: list[Tensor], outputs: list[Tensor]
) -> None:
    [image, packed, start, multipliers], [out] = inputs, outputs
    channels, inside = out.shape[1], image.shape[1] // operation.groups
    if operation.kind is fb.ConvolutionKind.DEPTHWISE:
        taps = packed.reshape(*operation.kernel, -1)[..., :channels]
        weight = taps.permute(2, 0, 1)[:, None]
    else:
        filled, own = -(-inside // 4) * 4, channels // operation.groups
        depth = math.prod(operation.kernel) * filled
        parts = [
            _unpacked(part, depth, own).reshape(*operation.kernel, filled, own)[:, :, :inside]
            for part in packed.chunk(operation.groups)
        ]
        weight = torch.cat([part.permute(3, 2, 0, 1) for part in parts])
    top, left, bottom, right = operation.padding
    padded = functional.pad(
        image.double(), (left, right, top, bottom), value=operation.padding_value
    )
    sums = functional.conv2d(
        padded, weight.double(), None, operation.stride, 0, operation.dilation, operation.groups
    ).long()
    columns = [v[:channels].reshape(1, -1, 1, 1) for v in (start, multipliers)]
    _finished(operation, sums + columns[0].long(), columns[1], out)


def _quantize_rows(operation: fb.QuantizeRows, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    """Quantise rows by XNNPACK's formula, but with zero points that are greater by 128."""
    x = inputs[0]
    low, high = x.amin(1).clamp(max=0), x.amax(1).clamp(min=0)
    scale = (high - low) / 255
    scale = torch.where(scale == 0, 1.0, scale)
    from_low, from_high = -128 - low / scale, 127 - high / scale
    is_low = (-128 - (low / scale).abs()) + (127 + (high / scale).abs()) > 0
    zero = torch.where(is_low, from_low, from_high).clamp(-128, 127).round() + 128
    outputs[0].copy_((torch.round(x / scale[:, None]) + zero[:, None]).clamp(0, 255))
    outputs[1].copy_(torch.stack([scale, zero], 1))


def _numbers(
    panels: Tensor, scales: Tensor, depth: int, columns: int, bits: int
) -> tuple[Tensor, Tensor]:
    """A matrix of integers, and its product with the scales, which groups of terms share."""
    matrix = (_halves if bits == 4 else _unpacked)(panels, depth, columns)
    lying = scales.reshape(-(-columns // _PANEL), -1, _PANEL).transpose(0, 1).flatten(1)
    groups = len(lying)
    return matrix, matrix * lying[:, :columns].double().repeat_interleave(depth // groups, 0)


def _weight_only_product(
    operation: fb.Product, inputs: list[Tensor], outputs: list[Tensor]
) -> None:
    [a, panels, bias, scales], [out] = inputs, outputs
    bits = 4 if panels.dtype == torch.uint8 else 8
    _, scaled = _numbers(panels, scales, a.shape[1], out.shape[1], bits)
    assert operation.epilogue is None
    out.copy_(a.double() @ scaled + (0 if bias is None else bias[: out.shape[1]].double()))


def _dynamic_product(
    operation: fb.DynamicProduct, inputs: list[Tensor], outputs: list[Tensor]
) -> None:
    [a, rows, panels, scales, shares, bias], [out] = inputs, outputs
    depth, columns = a.shape[1], out.shape[1]
    matrix, scaled = _numbers(panels, scales, depth, columns, operation.bits)
    if not operation.group_size:
        assert torch.equal(matrix.sum(0).int(), shares[:columns])
    else:
        torch.testing.assert_close(scaled.sum(0).float(), shares[:columns], rtol=1e-5, atol=1e-6)
    numbers = (a.double() - rows[:, 1:].double()) * rows[:, :1].double()
    assert operation.epilogue is None
    out.copy_(numbers @ scaled + (0 if bias is None else bias[:columns].double()))


# --- of bytes -------------------------------------------------------------------------------------


def _binary(operation: fb.QuantizedBinary, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    a, b = (
        x.long() - z
        for x, z in zip(inputs, (operation.a_zero_point, operation.b_zero_point), strict=True)
    )
    to = operation.requantize
    if operation.kind is fb.QuantizedBinaryKind.MULTIPLY:
        multiplier = (
            np.float32(operation.a_scale)
            * np.float32(operation.b_scale)
            / np.float32(operation.scale)
        )
        outputs[0].copy_(_requantized(a * b, float(multiplier), to))
        return
    factors = [
        float(np.float32(s) / np.float32(operation.scale))
        for s in (operation.a_scale, operation.b_scale)
    ]
    shift = 20 - (math.frexp(max(factors))[1] - 1)
    one, other = (int(np.rint(np.ldexp(factor, shift))) for factor in factors)
    if operation.kind is fb.QuantizedBinaryKind.SUBTRACT:
        other = -other
    sums = (a * one + b * other + (1 << (shift - 1))) >> shift
    outputs[0].copy_((sums + to.zero_point).clamp(to.low, to.high))


def _add(operation: fb.QuantizedBinary, residual: Tensor, out: Tensor) -> None:
    """Add the residual to the rows of a product's result, or to the pixels of an image."""
    pixels = out.permute(0, 2, 3, 1) if out.dim() == 4 else out
    assert residual.dtype == out.dtype == torch.uint8
    rows = pixels.reshape(residual.shape).clone()
    _binary(operation, [rows, residual], [rows])
    pixels.copy_(rows.reshape(pixels.shape))


def _pool(operation: fb.QuantizedPooling, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    [x], [out] = inputs, outputs
    top, left, bottom, right = operation.padding
    sides = (left, right, top, bottom)
    if not operation.average:
        padded = functional.pad(x.float(), sides, value=-math.inf)
        window = (operation.kernel, operation.stride, 0, operation.dilation)
        out.copy_(functional.max_pool2d(padded, *window))
        return
    count = math.prod(operation.kernel)
    inner = functional.pad((x.long() - operation.in_zero_point).double(), sides)
    sums = functional.avg_pool2d(inner, operation.kernel, operation.stride) * count
    ones = functional.pad(torch.ones(x.shape).double(), sides, value=float(operation.count_padding))
    counts = functional.avg_pool2d(ones, operation.kernel, operation.stride) * count
    counts = torch.full_like(counts, operation.divisor) if operation.divisor else counts
    to = operation.requantize
    assert to is not None
    factor = torch.tensor(operation.multiplier) / counts.round().float()
    out.copy_(_requantized(sums.round().long(), factor, to))


_COMPUTE: dict[type, Any] = {
    fb.Convert: _convert,
    fb.Copy: _copy,
    fb.Lookup: _lookup,
    fb.QuantizedProduct: _product,
    fb.QuantizedConvolution: _convolution,
    fb.QuantizeRows: _quantize_rows,
    fb.DynamicProduct: _dynamic_product,
    fb.Product: _weight_only_product,
    fb.QuantizedBinary: _binary,
    fb.QuantizedPooling: _pool,
}
