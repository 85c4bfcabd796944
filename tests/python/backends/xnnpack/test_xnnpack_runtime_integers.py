"""Quantised files of real ExecuTorch with XNNPACK delegates, run by our engine.

Where the engine computes with integers alone, so do results agree: bit for bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xnnpack_files import datatypes_of, kinds_of
from xnnpack_models import Calls
from xnnpack_quantized import Quantizer

import rushlight as rl
from delegates import flat
from rushlight.schema.xnnpack import Datatype

pytestmark = pytest.mark.interop
Tensors = tuple[torch.Tensor, ...]


@pytest.fixture
def peer(executorch: Any, tmp_path: Path) -> Quantizer:
    return Quantizer(executorch, tmp_path)


def check(
    peer: Quantizer,
    model: nn.Module,
    args: Tensors,
    *datatypes: Datatype,
    most: int = 0,
    **options: Any,
) -> bytes:
    """Quantise and export with real ExecuTorch, and compare the results of both runtimes."""
    pte = peer.theirs(peer.quantized(model, args, **options))
    assert set(datatypes) <= set(datatypes_of(pte))
    module = rl.load(pte, threads=2)
    for scale in (1, 0.5, 3):
        inputs = tuple(x * scale for x in args)
        actual, expected = flat(module(*inputs)), peer.results(pte, *inputs)
        for one, other in zip(actual, expected, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            distinct = other.unique()
            unit = float(distinct.diff().min()) if len(distinct) > 1 else 1.0
            assert float((one - other).abs().max()) <= (most * 1.01 + 1e-6) * unit
    return pte


@pytest.mark.parametrize("per_channel", [True, False])
def test_static_layers(peer: Quantizer, per_channel: bool) -> None:
    model = nn.Sequential(nn.Linear(37, 50), nn.ReLU(), nn.Linear(50, 17, bias=False))
    args = (torch.randn(9, 37),)
    kind = Datatype.QCINT8 if per_channel else Datatype.QINT8
    check(peer, model, args, Datatype.QINT8, kind, per_channel=per_channel)


def test_static_convolutions(peer: Quantizer) -> None:
    layers = [
        nn.Conv2d(3, 18, 3, padding=1),
        nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU6()),
        nn.Conv2d(3, 6, 3, groups=3, padding=1),
        nn.Conv2d(3, 20, 1),
        nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, dilation=2, bias=False), nn.Hardtanh()),
        nn.Sequential(nn.Conv2d(3, 6, 1), nn.Conv2d(6, 4, 3, groups=2)),
    ]
    check(peer, Calls(*layers), (torch.randn(2, 3, 12, 11),), Datatype.QCINT8, per_channel=True)


class Padded(nn.Module):
    """Paddings between two scales: of a convolution's size, of no size, read twice, at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, groups=8)
        self.c, self.d = nn.Conv2d(8, 6, 1), nn.Conv2d(8, 6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        y = F.relu6(self.a(F.pad(x, (0, 1, 0, 1))))
        z = F.relu6(self.b(F.pad(y, (1, 1, 1, 1))))
        w = F.pad(z, (1, 1, 1, 1), value=0.7)
        return self.c(F.pad(z, (0, 0, 0, 0))), self.d(w), F.pad(w, (2, 0, 0, 0)).clamp(0.1, 0.5)


def test_paddings_between_scales(peer: Quantizer) -> None:
    pte = check(peer, Padded(), (torch.randn(2, 3, 9, 8),), Datatype.QINT8)
    assert {"StaticConstantPad", "Convert", "Clamp"} <= set(kinds_of(pte))


def test_limits_and_scales_need_no_nodes_of_numbers(peer: Quantizer) -> None:
    """A limit belongs to the node before it, and another scale is one table."""
    x = torch.randn(1, 3, 9, 8)
    layers = [nn.Conv2d(3, 8, 3), nn.Hardtanh(0, 6), nn.ZeroPad2d(1), nn.Conv2d(8, 8, 3, groups=8)]
    pte = check(peer, nn.Sequential(*layers), (x,), Datatype.QINT8)
    kinds = list(kinds_of(pte))
    assert "Clamp" in kinds and kinds.count("Convert") == 4
    module = rl.load(pte, trace=True)
    module(x)
    ran = [kinds[int(event.inside)] for event in module.trace.events() if event.inside]
    between = ran[ran.index("Conv2d") : ran.index("DepthwiseConv2d")]
    assert [kind for kind in between if kind != "Conv2d"] == ["Convert"]
    assert "Clamp" not in ran and "StaticConstantPad" not in ran


def test_residuals_and_pools(peer: Quantizer) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x: torch.Tensor) -> Any:
            y = self.a(x).relu()
            z = (self.b(y) + y).relu()
            w = F.max_pool2d(z, 2, 2) * F.avg_pool2d(z, 2, 2, count_include_pad=False)
            return torch.cat([w, w], 1).flatten(1), z.mean((2, 3), keepdim=True)

    pte = check(peer, Block(), (torch.randn(2, 3, 8, 8),), Datatype.QINT8, most=1)
    assert {"Add", "Conv2d"} <= set(kinds_of(pte))


def test_layers_that_quantise_their_input(peer: Quantizer) -> None:
    model = nn.Sequential(nn.Linear(64, 50), nn.GELU(), nn.Linear(50, 17))
    x = torch.randn(9, 64)
    pte = peer.theirs(peer.quantized(model, (x,), dynamic=True))
    assert Datatype.QDINT8 in datatypes_of(pte)
    [ours], [theirs] = flat([rl.load(pte)(x)]), peer.results(pte, x)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
