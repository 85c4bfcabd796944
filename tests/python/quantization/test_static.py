"""The static recipe, pattern by pattern: what is quantised, and that our kernels agree."""

from __future__ import annotations

from collections.abc import Callable

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
    """A convolution and a function of its result."""

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


class Middle(nn.Module):
    """A function between two convolutions."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor], channels: int = 16) -> None:
        super().__init__()
        self.first, self.between = Conv(nn.ReLU6()), between
        self.second = nn.Conv2d(channels, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.between(self.first(x)))


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.linear, self.norm = nn.Conv1d(8, 8, 3), nn.Linear(48, 6), nn.BatchNorm1d(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.linear(self.conv(x.flatten(0, 1)[:8].mT).flatten(1))))


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
    "uneven-pad": (lambda: Padded([0, 1, 0, 1]), 3),
    "pad-with-ones": (lambda: Padded([1, 1, 1, 1], 1.0), 2),
    "pad-between": (lambda: Middle(lambda x: F.pad(x, (0, 1, 0, 1))), 4),
    "average": (lambda: Middle(lambda x: F.avg_pool2d(x, 2)), 4),
    "adaptive": (lambda: Middle(lambda x: F.adaptive_avg_pool2d(x, 3)), 4),
    "split": (lambda: Middle(lambda x: x.split(8, 1)[1], 8), 4),
    "upsample": (lambda: Middle(lambda x: F.interpolate(x, scale_factor=2)), 4),
    "leaky-relu": (lambda: Middle(lambda x: F.leaky_relu(x, 0.1)), 4),
    "number": (lambda: Middle(lambda x: F.leaky_relu(x - 1.0, 0.1)), 4),
    "gelu": (lambda: Middle(F.gelu), 4),
    "clamp": (lambda: Middle(lambda x: x.unsqueeze(0).clamp(0.1, 0.5).squeeze(0)), 6),
    "dropout": (lambda: Middle(nn.Dropout2d()), 3),
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(8, 4, 3), nn.BatchNorm2d(4)), 2),
    "rows": (lambda: Rows(), 4),
}


def data(count: int = 4) -> list[tuple[torch.Tensor]]:
    torch.manual_seed(3)
    return [(torch.randn(2, 8, 8, 8),) for _ in range(count)]


def with_statistics(model: nn.Module) -> nn.Module:
    """The model in eval mode, with random statistics in its batch norms."""
    torch.manual_seed(5)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 2)
    return model.eval()


def calls(program: torch.export.ExportedProgram, target: object) -> list[Node]:
    return [n for n in program.graph.nodes if n.target is target]


WITH_ONE_SCALE = ("conv-bn-relu6", "depthwise", "residual", "transposed", "rows")


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        *(("int8", name) for name in MODELS),
        *(("int8-per-tensor", name) for name in WITH_ONE_SCALE),
    ],
)
def test_kernels_agree_with_the_converted_graph(recipe: str, name: str) -> None:
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
    assert error.square().mean() < 1e-3 * full.square().mean()


def test_grouped_transposed_convolutions_keep_their_real_numbers() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(8, 8, 1), nn.ConvTranspose2d(8, 8, 3, groups=2)).eval()
    program = rushlight.quantize(model, calibrate=data())
    assert len(calls(program, QUANTISES)) == 2
    assert torch.allclose(program.module()(data()[0][0]), model(data()[0][0]), atol=0.02)


def test_constants_are_as_documented() -> None:
    torch.manual_seed(1)
    program = rushlight.quantize(Conv(nn.ReLU()).eval(), calibrate=data())
    [conv] = calls(program, aten.conv2d.default)
    x, weight, bias = conv.args[:3]
    values = {**program.state_dict, **program.constants}
    names = {**program.graph_signature.inputs_to_buffers}

    def of(node: Node) -> torch.Tensor:
        return values[names[node.name]]

    channels = quantised_ops.dequantize_per_channel.default
    assert weight.target is channels and weight.args[3:] == (0, -127, 127, torch.int8)
    assert bias.target is channels and bias.args[3] == 0 and bias.args[6] is torch.int32
    assert of(weight.args[0]).dtype == torch.int8 and of(bias.args[0]).dtype == torch.int32
    expected = torch.tensor(x.args[1]) * of(weight.args[1])
    assert torch.equal(of(bias.args[1]), expected)
    assert not of(weight.args[2]).any() and not of(bias.args[2]).any()
