"""The xnnpack backend on products whose rows are quantised as they come, with 8 and 4 bits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn
from xnnpack_models import Calls, left
from xnnpack_quantized import Quantizer, Rows, lowered, nodes_in

from rushlight.schema.xnnpack import Datatype

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Quantizer:
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
    nodes = peer.agree(program, [x], [x.abs() * 3 + 1], [torch.zeros(2, 3, 64)])
    assert nodes.count("FullyConnected") == 3 and nodes.count("Convert") == 2


def test_images_of_8_bits(peer: Quantizer) -> None:
    layers = nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(4, 8, 3, groups=2, stride=2, bias=False)
    model = Calls(*layers)
    x = torch.randn(3, 4, 8, 9)
    program = peer.quantized(model, (x,), dynamic=True)
    nodes = peer.agree(program, [x], [x * torch.tensor([1, 5, 0.1]).reshape(3, 1, 1, 1)])
    assert nodes.count("Conv2d") == 2 and nodes.count("Convert") == 1


FORMS = [
    (8, 0, Datatype.QCINT8),
    (4, 0, Datatype.QCINT4),
    (4, 32, Datatype.QBINT4),
    (4, 64, Datatype.QBINT4),
    (4, 128, Datatype.QBINT4),
]


def test_weights_of_8_and_4_bits(peer: Quantizer) -> None:
    model = Calls(*(Rows(nn.Linear(128, 6), bits, group) for bits, group, _ in FORMS))
    x = torch.randn(5, 128)
    program = torch.export.export(model.eval(), (x,))
    nodes = peer.agree(program, [x], [x.abs() * 3 + 1], [torch.zeros(5, 128)])
    assert nodes == ["Convert"] + ["FullyConnected"] * len(FORMS)
    pte = bytes(lowered(program).to_executorch().buffer)
    filters = [fields["filter_id"] for _, fields, _ in nodes_in(pte)[1:]]
    assert [filter[0] for filter in filters] == [datatype for _, _, datatype in FORMS]
    assert [filter[4][1] for filter in filters] == [6 * 128, *[6 * 64] * 4]
    theirs = [node for node in nodes_in(peer.theirs(program)) if node[0] == "FullyConnected"]
    assert nodes_in(pte)[1:] == theirs


def test_rows_in_half_precision(peer: Quantizer) -> None:
    """Weights of 4 bits without groups are left out: XNNPACK refuses them when they run."""
    model = Calls(*(Rows(nn.Linear(128, 6).half(), *form) for form in ((8, 0), (4, 32))))
    x = torch.randn(5, 128).half()
    edge = lowered(torch.export.export(model.eval(), (x,)))
    assert not left(edge)
    actual = peer.results(bytes(edge.to_executorch().buffer), x)
    for one, other in zip(actual, model(x), strict=True):
        assert one.dtype == torch.float16
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)
