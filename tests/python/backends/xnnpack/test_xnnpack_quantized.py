"""The xnnpack backend on quantised programs: the integers of real ExecuTorch's own exporter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xnnpack_models import Calls, graphs_of, left, nodes_of
from xnnpack_quantized import OPS, Integers, Quantizer, Rows, lowered, nodes_in

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop

KINDS = pytest.mark.parametrize(
    "per_channel",
    [
        pytest.param(True, id="channels"),
        pytest.param(False, marks=pytest.mark.full, id="tensor"),
    ],
)


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Quantizer:
    return Quantizer(executorch, tmp_path)


class Block(nn.Module):
    """Two convolutions, one of them depthwise, and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.each = nn.Conv2d(8, 16, 3, groups=8, bias=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.each(self.norm(self.enter(x)).relu())
        return self.head(y.mean((2, 3), keepdim=True).flatten(1))


@KINDS
def test_the_payload_is_what_executorch_writes(peer: Quantizer, per_channel: bool) -> None:
    """Except that a transpose which only moves sizes of 1 is part of the reshape behind it."""
    x = torch.randn(2, 3, 12, 12)
    program = peer.quantized(Block(), (x,), per_channel=per_channel)
    ours, theirs = (
        nodes_in(pte)
        for pte in (bytes(lowered(program).to_executorch().buffer), peer.theirs(program))
    )
    [moved] = [i for i, node in enumerate(theirs) if node[0] == "StaticTranspose" and i > 1]
    theirs.pop(moved)
    theirs[moved][1]["input_id"] = ours[moved][1]["input_id"]
    assert [name for name, _, _ in ours] == [name for name, _, _ in theirs]
    assert ours == theirs
    peer.agree(program, [x], [torch.randn(2, 3, 12, 12) * 3])


LAYERS: list[tuple[nn.Module, tuple[int, ...]]] = [
    (nn.Linear(16, 7), (3, 16)),
    (nn.Linear(16, 1, bias=False), (2, 3, 16)),
    (nn.Sequential(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 3)), (5, 9)),
    (nn.Conv2d(3, 8, 3, padding=1, dilation=2), (2, 3, 9, 11)),
    (nn.Conv2d(4, 6, (1, 3), stride=(2, 1), bias=False), (1, 4, 8, 8)),
    (nn.Conv2d(8, 6, 3, groups=2), (2, 8, 7, 7)),
    (nn.Conv2d(6, 6, 3, padding=1, groups=6), (2, 6, 7, 7)),
    (nn.Conv2d(1, 6, 3), (2, 1, 7, 7)),
    (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU6()), (2, 3, 7, 7)),
    (nn.ConvTranspose2d(4, 6, 3, stride=2), (2, 4, 5, 5)),
]


class Layers(nn.Module):
    """Layers, each of an input of its own."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers, inputs, strict=True)]


@KINDS
def test_layers(peer: Quantizer, per_channel: bool) -> None:
    layers, shapes = zip(*LAYERS, strict=True)
    inputs = tuple(map(torch.randn, shapes))
    program = peer.quantized(Layers(*layers), inputs, per_channel=per_channel)
    nodes = peer.agree(program, inputs, [x * 2 for x in inputs])
    assert nodes.count("FullyConnected") == 4 and nodes.count("ConvTranspose2d") == 1
    assert nodes.count("DepthwiseConv2d") == 2 and nodes.count("Conv2d") == 4
    assert nodes.count("Convert") == 2 * len(LAYERS)


def _calls(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [
        x + y,
        (x + y).relu(),
        x * y,
        (x * y[:, :1]).relu(),
        torch.cat([x + y, x * y], 1),
        F.max_pool2d(x + y, 2, 2),
        F.adaptive_avg_pool2d(x * y, 1),
        F.relu6(x * y),
        (x + y).flatten(1),
        (x * y).permute(0, 2, 3, 1),
    ]


def test_calls(peer: Quantizer) -> None:
    inputs = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8) * 2
    program = peer.quantized(Calls(_calls), inputs)
    nodes = peer.agree(program, inputs, [x * 1.5 for x in inputs])
    assert {"Add", "Multiply", "Concatenate2", "MaxPooling2d", "GlobalAvgPooling2d"} <= {*nodes}


IN, OTHER, OUT = Integers(0.03, -5), Integers(0.025, 7), Integers(0.021, 3)

FUNCTIONS: dict[str, Any] = {
    "Abs": torch.abs,
    "Ceiling": torch.ceil,
    "Clamp": lambda x: x.clamp(-0.5, 1.0),
    "Cos": torch.cos,
    "ELU": F.elu,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "Gelu": F.gelu,
    "Hardswish": F.hardswish,
    "Negate": torch.neg,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "Square": torch.square,
    "Tanh": torch.tanh,
}


def near(peer: Quantizer, model: nn.Module, *inputs: torch.Tensor) -> list[str]:
    """The nodes of a model whose results in real ExecuTorch are eager's, or one integer beside."""
    edge = lowered(torch.export.export(model.eval(), inputs))
    assert not left(edge)
    actual = peer.results(bytes(edge.to_executorch().buffer), *inputs)
    for i, (one, other) in enumerate(zip(actual, model(*inputs), strict=True)):
        assert one.shape == other.shape
        assert float((one - other).abs().max()) <= IN.form[0] * 1.001, f"result {i}"
    return nodes_of(edge)


def test_functions_on_integers(peer: Quantizer) -> None:
    x = torch.randn(3, 70)
    nodes = near(peer, Calls(lambda x: [OUT(f(IN(x))) for f in FUNCTIONS.values()]), x)
    assert sorted(nodes) == sorted([*FUNCTIONS, *["Convert"] * (1 + len(FUNCTIONS))])


def test_integers_of_one_scale_are_handed_on(peer: Quantizer) -> None:
    functions = [
        lambda x: OUT(OUT(x).transpose(1, 2).flatten(1)[:, 3:20]),
        lambda x: OUT(F.pad(OUT(x), (1, 2, 0, 1))),
        lambda x: OUT(F.max_pool2d(OUT(x), 3, 2, 1)),
        lambda x: OUT(torch.cat([OUT(x), OUT(x * 2)], 1)),
        lambda x: OUT(OUT(x).amax((2, 3), keepdim=True)),
        lambda x: OUT(F.interpolate(OUT(x), scale_factor=2.0, mode="bilinear")),
        lambda x: OUT(torch.stack(OUT(x).split(2, 1))),
        lambda x: OUT(OUT(x).relu()[0]),
        lambda x: OUT(OUT(x) - OTHER(x)),
        lambda x: OUT(OUT(x).mean((2, 3))),
    ]
    nodes = near(peer, Calls(*functions), torch.randn(2, 4, 6, 6))
    assert nodes.count("Convert") == 3 + len(functions)


def test_patterns_without_an_end_compute_real_numbers(peer: Quantizer) -> None:
    functions = [
        lambda x: IN(x).tanh(),
        lambda x: IN(x) + x,
        lambda x: OUT(x.sigmoid()),
        lambda x: OUT(torch.cat([IN(x), OTHER(x)], 1)),
        lambda x: OUT(F.avg_pool2d(OUT(x), 2)),
        lambda x: OUT(IN(x) / OTHER(x.abs() + 1)),
        lambda x: [OUT(y := IN(x).exp()), y.relu()],
        lambda x: OTHER(IN(x)),
        lambda x: IN(x) * 2,
    ]
    near(peer, Calls(*functions), torch.randn(2, 4, 6, 6))


class Gated(nn.Module):
    """Products of the same rows, and sums of the same integers, on both sides of a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = Rows(nn.Linear(32, 32), 8), Rows(nn.Linear(32, 32), 4, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.two(x) + F.layer_norm(self.one(x), [32])
        integers = OUT(y)
        return OUT(OUT(F.layer_norm(integers, [32])) + integers)


def test_patterns_around_what_is_left_out(peer: Quantizer) -> None:
    x, model = torch.randn(5, 32), Gated().eval()
    edge = lowered(torch.export.export(model, (x,)))
    assert not any("quantize" in name or "linear" in name for name in left(edge))
    nodes = nodes_of(edge)
    assert nodes.count("FullyConnected") == 2 and len(graphs_of(edge)) == 3
    [result] = peer.results(bytes(edge.to_executorch().buffer), x)
    assert float((result - model(x)).abs().max()) <= 2 * OUT.form[0] * 1.001


class Outer(nn.Module):
    """Integers as an input, as a result and as a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.constant = nn.Buffer(torch.randn(4, 1, 1))

    def forward(self, x: torch.Tensor, q: torch.Tensor) -> list[torch.Tensor]:
        y = OPS.dequantize_per_tensor(q, *IN.form)
        small = OPS.quantize_per_tensor(OUT(y + IN(x)).tanh(), *OUT.form)
        return [small, OUT(y * IN(self.constant))]


def test_integers_outside_and_constants(peer: Quantizer) -> None:
    x, q = torch.randn(2, 4, 3, 3), torch.randint(-128, 128, (2, 4, 3, 3), dtype=torch.int8)
    model = Outer()
    edge = lowered(torch.export.export(model, (x, q)))
    assert not left(edge)
    small, product = peer.results(bytes(edge.to_executorch().buffer), x, q)
    expected = model(x, q)
    assert small.dtype == torch.int8
    assert int((small.int() - expected[0].int()).abs().max()) <= 1
    assert float((product - expected[1]).abs().max()) <= OUT.form[0] * 1.001
    assert nodes_of(edge).count("Convert") == 2
