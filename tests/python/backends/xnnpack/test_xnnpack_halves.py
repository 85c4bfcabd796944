"""Files of real ExecuTorch whose XNNPACK delegates are in float16, run by our engine.

We compute in float32 and round results once: that is what eager gives for the same weights in
float32, rounded. The real runtime rounds after every node.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from benchmarks.models import build
from torch import nn
from xnnpack_files import Exporter, datatypes_of, kinds_of
from xnnpack_models import Calls, equal

import rushlight as rl
from delegates import flat
from rushlight.schema.xnnpack import Datatype

pytestmark = pytest.mark.interop
Tensors = tuple[torch.Tensor, ...]


@pytest.fixture
def peer(executorch: Any, tmp_path: Path) -> Exporter:
    return Exporter(executorch, tmp_path)


def halves(*tensors: torch.Tensor) -> Tensors:
    return tuple(x.half() if x.is_floating_point() else x for x in tensors)


def rounded_once(model: nn.Module, args: Tensors) -> list[torch.Tensor]:
    """Eager's results for a model in float16, computed in float32."""
    wide = copy.deepcopy(model).float()
    with torch.no_grad():
        results = flat(wide(*(x.float() if x.is_floating_point() else x for x in args)))
    return [x.half() if x.is_floating_point() else x for x in results]


def close(ours: torch.Tensor, expected: torch.Tensor) -> None:
    """Check that results are equal, neighbours in float16, or apart by little relative to the
    largest."""
    assert ours.shape == expected.shape and ours.dtype == expected.dtype
    if not expected.is_floating_point():
        return torch.testing.assert_close(ours, expected, rtol=0, atol=0)
    scale = float(expected.float().abs().max())
    torch.testing.assert_close(
        *(ours.float(), expected.float()), rtol=2**-10, atol=1e-5 * scale + 1e-7
    )


def check(
    peer: Exporter,
    model: nn.Module,
    args: Tensors,
    *kinds: str,
    whole: bool = False,
    runs_there: bool = True,
) -> None:
    """Export in float16 there, run here and there; the file must have nodes of these kinds."""
    model, args = model.half().eval(), halves(*args)
    pte = peer.export(model, args, whole)
    assert set(kinds) <= set(kinds_of(pte))
    assert Datatype.FP16 in datatypes_of(pte)
    module = rl.load(pte, threads=2)
    expected = rounded_once(model, args)
    for _ in range(2):  # the second time in scratch that is no longer fresh
        ours = flat(module(*args))
        for one, other in zip(ours, expected, strict=True):
            close(one, other)
    if not runs_there:
        return
    for one, other in zip(ours, peer.results(pte, *args), strict=True):
        equal(one, other)


def test_elementwise_nodes(peer: Exporter) -> None:
    unary: list[Callable[..., Any]] = [
        *(torch.sigmoid, torch.floor, torch.ceil, F.hardswish, torch.neg, torch.abs, F.gelu),
        *(torch.tanh, torch.exp, torch.sin, torch.cos, torch.relu, F.relu6),
        lambda x: x.clamp(-0.5, 0.7),
        lambda x: (x.abs() + 0.5).sqrt(),
        lambda x: (x.abs() + 0.5).rsqrt(),
        lambda x: (x.abs() + 0.5).log(),
        lambda x: F.leaky_relu(x, 0.25),
        lambda x: x.pow(2),
    ]

    class Binary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slopes = nn.PReLU(3)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            return (
                *(x + y, x - y, y - x, x * y, x / (y.abs() + 1), torch.minimum(x, y)),
                *(torch.maximum(y, x), (x + y).relu(), ((x * 2 - y) * x).clamp(-1, 1)),
                self.slopes(x),
            )

    model = Calls(*(lambda x, _, f=f: f(x) for f in unary), Binary())
    args = (torch.randn(2, 3, 4, 5), torch.randn(3, 1, 5))
    check(peer, model, args, "Add", "Tanh", "PReLU", "Clamp", "Div")


def test_products(peer: Exporter) -> None:
    layers = [nn.Linear(70, 37), nn.Linear(70, 16, bias=False), nn.Linear(70, 70)]
    weight = nn.Parameter(torch.randn(70, 35))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.weight = nn.ModuleList(layers), weight

        def forward(self, x: torch.Tensor, w: torch.Tensor) -> Any:
            a, b, c = self.layers
            return (
                *(a(x), F.gelu(b(x)), c(x).relu() + x, torch.mm(x[0], self.weight)),
                *(torch.bmm(w, w.transpose(1, 2)), torch.bmm(w, w.transpose(1, 2)).softmax(-1)),
            )

    args = (torch.randn(2, 6, 70), torch.randn(2, 6, 11))
    kinds = ("FullyConnected", "BatchMatrixMultiply", "Softmax")
    check(peer, Model(), args, *kinds)


def test_images(peer: Exporter) -> None:
    layers = [
        nn.Conv2d(3, 18, 3, padding=1),
        nn.Sequential(nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(3, 6, 3, stride=2), nn.ReLU6()),
        nn.Conv2d(3, 6, 3, groups=3),
        nn.ConvTranspose2d(3, 6, 3, stride=2, padding=1, output_padding=1),
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Hardswish()),
        nn.Sequential(nn.Conv2d(3, 16, 1), nn.Conv2d(16, 16, 3, padding=1)),  # by Winograd's
    ]
    functions = [
        *layers,
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        lambda x: x.mean((-1, -2), keepdim=True),
        lambda x: F.interpolate(x, (20, 9), mode="bilinear"),
    ]
    kinds = "Conv2d DepthwiseConv2d ConvTranspose2d MaxPooling2d AvgPooling2d GlobalAvgPooling2d"
    kinds += " StaticResizeBilinear2D"
    check(peer, Calls(*functions), (torch.randn(2, 3, 16, 17),), *kinds.split())


def test_movement(peer: Exporter) -> None:
    def all_of(x: torch.Tensor, y: torch.Tensor) -> Any:
        t = x.permute(0, 2, 3, 1)
        return (
            *(t, t.sin(), (t + 1).reshape(6, 20), x[:, 1:], x[..., 2:4].exp()),
            *(torch.cat([x, y], 2), torch.cat([x, x + 1, y[:, :, :4]], 0), F.softmax(t, -1)),
            *(F.pad(x, (1, 2, 3, 0), value=1.5), F.pad(t, (0, 1)).cos()),
        )

    kinds = "StaticTranspose StaticReshape StaticSlice Concatenate2 Concatenate3 StaticConstantPad"
    args = (torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5))
    check(peer, Calls(all_of), args, *kinds.split())


def test_places_of_maxima(peer: Exporter) -> None:
    def all_of(x: torch.Tensor) -> Any:
        return (*x.max(2, keepdim=True), *x.max(3, keepdim=True), F.elu(x, 0.7))

    # XNNPACK itself has no such operator in float16.
    args = (torch.randn(2, 5, 9, 11),)
    check(peer, Calls(all_of), args, "ArgMaxPooling2d", whole=True, runs_there=False)


def test_conversions(peer: Exporter) -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> Any:
        wide = x.float() * 3
        return wide + y, (wide * y).half(), (y.half().float() - y) * 1000

    x, y = torch.randn(3, 7).half(), torch.randn(3, 7)
    model = Calls(both)
    # ExecuTorch's exporter makes no such nodes; its runtime has them.
    pte = rl.export(model, (x, y), backend="xnnpack", verify=False).buffer
    assert list(kinds_of(pte)).count("Convert") == 4
    ours = flat(rl.load(pte)(x, y))
    for one, other, real in zip(ours, model(x, y), peer.results(pte, x, y), strict=True):
        for expected in (other, real):  # also what is left of a number when it has been rounded
            torch.testing.assert_close(one, expected, rtol=1e-6, atol=1e-6)


def test_sizes_that_only_the_call_knows(peer: Exporter) -> None:
    size = torch.export.Dim("size", min=2, max=24)
    model = Calls(nn.Linear(10, 20), lambda x: x.sigmoid() * x).half()
    pte = peer.export(model, halves(torch.randn(24, 10)), dynamic_shapes=[({0: size},)])
    module = rl.load(pte, threads=2)
    for rows in (24, 5, 16, 3, 23):
        args = halves(torch.randn(rows, 10))
        for one, other in zip(flat(module(*args)), rounded_once(model, args), strict=True):
            close(one, other)


@pytest.mark.parametrize(
    "name", ["minilm_tiny", pytest.param("mobilenet_v2_tiny", marks=pytest.mark.full)]
)
def test_models(peer: Exporter, name: str) -> None:
    case = build(name)
    args = halves(*case.leaves())
    model = case.module.half()
    pte = peer.export(model, args)
    ours = flat(rl.load(pte, threads=2)(*args))
    for one, other in zip(ours, peer.results(pte, *args), strict=True):
        scale = float(other.float().abs().max())
        assert one.dtype == other.dtype == torch.float16
        assert float((one.float() - other.float()).abs().max()) < 0.02 * scale


def test_another_dtype_is_refused(peer: Exporter) -> None:
    model = Calls(lambda x: x.sin() + x).half()
    pte = peer.export(model, halves(torch.randn(3, 4)))
    with pytest.raises(rl.RunError, match="float16"):
        rl.load(pte)(np.zeros((3, 4), np.float32))
