"""The xnnpack backend on products whose rows are quantised as they come, with 8 and 4 bits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xnnpack_models import Calls
from xnnpack_quantized import OPS, Quantizer, lowered, nodes_in

from rushlight.schema.xnnpack import Datatype

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Quantizer:
    torch.manual_seed(0)  # whatever was drawn before
    return Quantizer(executorch, tmp_path)


class Head(nn.Module):
    """Products of the same rows, with and without a bias, an activation and a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(64, 32), nn.Linear(64, 32, bias=False)
        self.last = nn.Linear(32, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last((self.one(x).relu() + self.two(x)).softmax(-1))


def test_rows_of_8_bits(peer: Quantizer) -> None:
    x = torch.randn(2, 3, 64)
    program = peer.quantized(Head(), (x,), dynamic=True)
    found = peer.agree(program, [x], [x.abs() * 3 + 1], [torch.zeros(2, 3, 64)])
    assert found.count("FullyConnected") == 3 and found.count("Convert") == 2


def test_images_of_8_bits(peer: Quantizer) -> None:
    layers = nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(4, 8, 3, groups=2, stride=2, bias=False)
    model = Calls(*layers)
    x = torch.randn(3, 4, 8, 9)
    program = peer.quantized(model, (x,), dynamic=True)
    found = peer.agree(program, [x], [x * torch.tensor([1, 5, 0.1]).reshape(3, 1, 1, 1)])
    assert found.count("Conv2d") == 2 and found.count("Convert") == 1


class Rows(nn.Module):
    """A product of rows that are quantised as they come, with quantised weights.

    Args:
        depth, outputs: of the weights.
        bits: of a weight.
        group: how many share a scale; 0: all of an output.
    """

    def __init__(self, depth: int, outputs: int, bits: int, group: int = 0) -> None:
        super().__init__()
        half = 1 << (bits - 1)
        self.range, self.group = (-half, half - 1), group
        weight = torch.randint(-half, half, (outputs, depth), dtype=torch.int8)
        self.register_buffer("weight", weight)
        shape = (outputs, depth // group) if group else (outputs,)
        self.register_buffer("scales", torch.rand(shape) * 0.02 + 0.001)
        self.register_buffer("zeros", torch.zeros(shape, dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scales, zeros = OPS.choose_qparams_per_token_asymmetric(x, torch.int8)
        form = (scales, zeros, -128, 127, torch.int8)
        rows = OPS.dequantize_per_token(OPS.quantize_per_token(x, *form), *form, torch.float32)
        given: Any = (self.weight, self.scales, self.zeros)
        if self.group:
            weight = OPS.dequantize_per_channel_group(
                *(*given, *self.range, torch.int8, self.group, torch.float32)
            )
        else:
            weight = OPS.dequantize_per_channel(*given, 0, *self.range, torch.int8)
        return F.linear(rows, weight, self.bias)


FORMS = [
    (8, 0, Datatype.QCINT8),
    (4, 0, Datatype.QCINT4),
    (4, 32, Datatype.QBINT4),
    (4, 64, Datatype.QBINT4),
    (4, 128, Datatype.QBINT4),
]


def test_weights_of_8_and_4_bits(peer: Quantizer) -> None:
    model = Calls(*(Rows(128, 6, bits, group) for bits, group, _ in FORMS))
    x = torch.randn(5, 128)
    program = torch.export.export(model.eval(), (x,))
    found = peer.agree(program, [x], [x.abs() * 3 + 1], [torch.zeros(5, 128)])
    assert found == ["Convert"] + ["FullyConnected"] * len(FORMS)
    pte = bytes(lowered(program).to_executorch().buffer)
    filters = [fields["filter_id"] for _, fields, _ in nodes_in(pte)[1:]]
    assert [filter[0] for filter in filters] == [datatype for _, _, datatype in FORMS]
    assert [filter[4][1] for filter in filters] == [6 * 128, *[6 * 64] * 4]
    theirs = [node for node in nodes_in(peer.theirs(program)) if node[0] == "FullyConnected"]
    assert nodes_in(pte)[1:] == theirs
