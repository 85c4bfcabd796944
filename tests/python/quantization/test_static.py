"""The static recipe, pattern by pattern: what is quantised, and that our kernels agree."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch import nn
from torch.fx import Node
from torch.nn import functional as F

import rushlight

quantised_ops = torch.ops.quantized_decomposed
QUANTISES = quantised_ops.quantize_per_tensor.default
DEQUANTISES = quantised_ops.dequantize_per_tensor.default
aten = torch.ops.aten


class Conv(nn.Module):
    """A convolution with what stands behind it."""

    def __init__(self, *after: nn.Module, padding: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, padding=padding, groups=groups)
        self.after = nn.Sequential(*after)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.conv(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Conv(nn.BatchNorm2d(16), nn.ReLU6()), nn.Conv2d(16, 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return torch.relu(x + self.second(x))


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Conv(), Conv(nn.Hardswish())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = torch.cat([self.first(x), self.second(x)], 1)
        return F.max_pool2d(both, 2).flatten(1)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = Conv(), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.conv(x).mean((2, 3)))


class Padded(nn.Module):
    def __init__(self, pads: list[int], value: float = 0.0) -> None:
        super().__init__()
        self.conv, self.pads, self.value = Conv(padding=0), pads, value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(F.pad(x, self.pads, value=self.value))


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.gate = Conv(), Conv(nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x) * self.gate(x)


# Model, and how many values its graph quantises.
MODELS = {
    "conv": (lambda: Conv(), 2),
    "conv-relu": (lambda: Conv(nn.ReLU()), 2),
    "conv-bn-relu6": (lambda: Conv(nn.BatchNorm2d(16), nn.ReLU6()), 2),
    "conv-hardtanh": (lambda: Conv(nn.Hardtanh(0.0, 6.0)), 2),
    "conv-hardswish": (lambda: Conv(nn.Hardswish()), 3),
    "depthwise": (lambda: Conv(groups=8), 2),
    "residual": (lambda: Block(), 4),
    "branches": (lambda: Branches(), 7),
    "head": (lambda: Head(), 4),
    "gate": (lambda: Gate(), 5),
    "symmetric-pad": (lambda: Padded([1, 1, 1, 1]), 2),
    "uneven-pad": (lambda: Padded([0, 1, 0, 1]), 2),
}


def data(count: int = 4) -> list[tuple[torch.Tensor]]:
    torch.manual_seed(3)
    return [(torch.randn(2, 8, 8, 8),) for _ in range(count)]


def with_statistics(model: nn.Module) -> nn.Module:
    """In eval mode, its batch norms with statistics that are not the trivial ones."""
    torch.manual_seed(5)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 2)
    return model.eval()


def calls(program: torch.export.ExportedProgram, target: object) -> list[Node]:
    return [n for n in program.graph.nodes if n.target is target]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("recipe", ["int8", "int8-per-tensor"])
def test_kernels_agree_with_the_converted_graph(name: str, recipe: str) -> None:
    torch.manual_seed(1)
    make, count = MODELS[name]
    model = with_statistics(make())
    program = rushlight.quantize(model, calibrate=data(), recipe=recipe)
    assert len(calls(program, QUANTISES)) == count
    x = data()[0][0]
    expected, scale = program.module()(x), calls(program, DEQUANTISES)[-1].args[1]
    module = rushlight.load(rushlight.export(program).buffer)
    assert (module(x) - expected).abs().max() <= scale * 1.001
    error, full = expected - model(x), model(x)
    assert error.square().mean() < 4e-4 * full.square().mean()
