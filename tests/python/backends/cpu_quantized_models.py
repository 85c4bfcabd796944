"""Models with quantising and dequantising calls, like those that torchao's conversion returns."""

from __future__ import annotations

from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # it defines the operators
from cpu_integers import Reference
from cpu_models import equal
from torch import Tensor, nn

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.partition import get_non_lowered_nodes
from rushlight.schema import cpu_engine as fb

ops = torch.ops.quantized_decomposed
INT8 = (-128, 127, torch.int8)
UINT8 = (0, 255, torch.uint8)


def quantized(x: Tensor, scale: float, zero: int = 0, kind: Any = INT8) -> Tensor:
    return ops.quantize_per_tensor(x, scale, zero, *kind)


def dequantized(x: Tensor, scale: float, zero: int = 0, kind: Any = INT8) -> Tensor:
    return ops.dequantize_per_tensor(x, scale, zero, *kind)


def qdq(x: Tensor, scale: float, zero: int = 0, kind: Any = INT8) -> Tensor:
    return dequantized(quantized(x, scale, zero, kind), scale, zero, kind)


class Weights(nn.Module):
    """An integer weight with its scales, and a bias."""

    def __init__(
        self, *sizes: int, bias: bool = True, per_channel: bool = True, low: int = -127
    ) -> None:
        super().__init__()
        self.low, self.high = low, 7 if low == -8 else 127
        self.register_buffer("weight", torch.randint(low, self.high + 1, sizes, dtype=torch.int8))
        count = sizes[0] if per_channel else 1
        self.register_buffer("scales", (torch.rand(count) + 0.5) / self.high / 4)
        self.register_buffer("zeros", torch.zeros(count, dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(sizes[0]) * 0.3) if bias else None
        self.per_channel, self.scale = per_channel, float(self.scales[0])

    def number(self) -> Tensor:
        kind = (self.low, self.high, torch.int8)
        if not self.per_channel:
            return ops.dequantize_per_tensor(self.weight, self.scale, 0, *kind)
        return ops.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, *kind)


class Linear(Weights):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.number(), self.bias)


class Conv(Weights):
    def __init__(self, *sizes: int, weights: Any = None, **window: Any) -> None:
        super().__init__(*sizes, **(weights or {}))
        self.window = window

    def forward(self, x: Tensor) -> Tensor:
        conv = nn.functional.conv1d if self.weight.dim() == 3 else nn.functional.conv2d
        return conv(x, self.number(), self.bias, **self.window)


class Holding(nn.Module):
    """A function and the modules that it uses."""

    def __init__(self, *parts: Any) -> None:
        super().__init__()
        *modules, self.function = parts
        self.parts = nn.ModuleList(modules)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def lowered(model: nn.Module, *args: Any) -> rl.EdgeProgramManager:
    exported = torch.export.export(model.eval(), args)
    return rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])


def nodes_in(edge: rl.EdgeProgramManager) -> list[fb.Node]:
    parts = lowered_modules(edge.exported_program())
    return [node for part in parts for node in fb.unpack(part.processed_bytes).nodes]


def names_of(nodes: list[fb.Node]) -> list[str]:
    return [type(node.operation).__name__ for node in nodes]


def residuals_of(nodes: list[fb.Node]) -> list[fb.QuantizedResidual]:
    """The residuals that products and convolutions add to their results."""
    residuals = [getattr(node.operation, "residual", None) for node in nodes]
    return [residual for residual in residuals if residual is not None]


def left_of(edge: rl.EdgeProgramManager) -> dict[str, Any]:
    """The calls outside delegates, and the reasons why they were not taken."""
    nodes = get_non_lowered_nodes(edge.exported_program().graph)
    return {n.name: n.meta.get("declined", {}).get("CpuBackend") for n in nodes}


def whole(model: nn.Module, *args: Tensor, scale: float = 0.0, most: float = 0.0) -> list[str]:
    """Compare results with eager's, at most `most` times `scale` apart; returns the names of the
    delegate's nodes."""
    edge = lowered(model, *args)
    assert not left_of(edge)
    [part] = lowered_modules(edge.exported_program())
    graph = fb.unpack(part.processed_bytes)
    assert graph.version == _version(graph.nodes)
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True, threads=2)
    with torch.no_grad():
        wanted, ours = flat(model(*args)), flat(module(*args))
    exact = Reference(part)(*args)
    for i, (one, same, other) in enumerate(zip(exact, ours, wanted, strict=True)):
        assert one.dtype == same.dtype == other.dtype
        near(one.reshape(other.shape), other, scale * most, f"result {i} of the reference")
        rounding = 1e-6 * float(other.abs().max()) if other.is_floating_point() else 0.0
        near(same, one.reshape(other.shape), rounding, f"result {i} of the engine")
    return names_of(nodes_in(edge))


def _version(nodes: list[fb.Node]) -> int:
    if any(isinstance(node.operation, fb.Product) for node in nodes):
        return 5  # with scales: the operators between integers have no others
    return 4 if residuals_of(nodes) else 3


def near(one: Tensor, other: Tensor, within: float, what: str) -> None:
    apart = (one.double() - other.double()).abs().max()
    assert apart <= within * (1 + 1e-5) + 1e-6, f"{what}: {apart} apart, {within} allowed"


class Groups(nn.Module):
    """A linear layer of 4-bit weights, or others, with a scale for each group of inputs."""

    def __init__(
        self, columns: int, depth: int, size: int, exact: bool = True, low: int = -8
    ) -> None:
        super().__init__()
        self.size, self.limits = size, (low, -low - 1)
        weight = torch.randint(low, -low, (columns, depth), dtype=torch.int8)
        self.register_buffer("weight", weight)
        scales = (torch.rand(columns, depth // size) + 0.5) / -low / 8
        self.register_buffer("scales", scales.bfloat16().float() if exact else scales)
        self.register_buffer("zeros", torch.zeros(scales.shape, dtype=torch.int32))
        self.bias = nn.Parameter(torch.randn(columns) * 0.3)

    def forward(self, x: Tensor) -> Tensor:
        how = (*self.limits, torch.int8, self.size, torch.float32)
        parameters = (self.weight, self.scales, self.zeros, *how)
        return nn.functional.linear(x, ops.dequantize_per_channel_group(*parameters), self.bias)


def tensor_at_run(x: Tensor) -> Tensor:
    """Quantise and dequantise with parameters from the tensor, as XNNPACK's quantizer does."""
    parameters = ops.choose_qparams.tensor(x, -128, 127, 2.0**-12, torch.int8)
    integers = ops.quantize_per_tensor.tensor(x, *parameters, *INT8)
    return ops.dequantize_per_tensor.tensor(integers, *parameters, *INT8)


def rows_at_run(x: Tensor) -> Tensor:
    """Quantise and dequantise each row with parameters from the row."""
    parameters = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
    integers = ops.quantize_per_token(x, *parameters, *INT8)
    return ops.dequantize_per_token(integers, *parameters, *INT8, torch.float32)


def close_to_eager(model: nn.Module, *args: Tensor, tolerance: float = 1e-5) -> None:
    """Compare the engine's results with eager's, relative to the greatest of these."""
    module = rl.load(bytes(lowered(model, *args).to_executorch().buffer), check_backends=True)
    with torch.no_grad():
        equal(module(*args), model(*args), tolerance)
