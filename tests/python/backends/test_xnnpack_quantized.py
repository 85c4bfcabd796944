"""The xnnpack backend on quantised programs: the integers of real ExecuTorch's own exporter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xnnpack_models import Calls
from xnnpack_quantized import Quantizer, lowered, nodes_in

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop

KINDS = pytest.mark.parametrize("per_channel", [True, False], ids=["channels", "tensor"])


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Quantizer:
    torch.manual_seed(0)  # whatever was drawn before
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
    found = peer.agree(program, inputs, [x * 2 for x in inputs])
    assert found.count("FullyConnected") == 4 and found.count("ConvTranspose2d") == 1
    assert found.count("DepthwiseConv2d") == 2 and found.count("Conv2d") == 4
    assert found.count("Convert") == 2 * len(LAYERS)


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
    found = peer.agree(program, inputs, [x * 1.5 for x in inputs])
    assert {"Add", "Multiply", "Concatenate2", "MaxPooling2d", "GlobalAvgPooling2d"} <= {*found}
