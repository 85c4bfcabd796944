"""Files of real ExecuTorch with XNNPACK delegates, run by our engine: every node of the format.

Results are held to eager's and to those of the real runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from benchmarks.models import build
from torch import nn
from xnnpack_files import Exporter, kinds_of

import rushlight as rl
from delegates import flat

pytestmark = pytest.mark.interop
Tensors = tuple[torch.Tensor, ...]


@pytest.fixture
def peer(executorch: Any, tmp_path: Path) -> Exporter:
    return Exporter(executorch, tmp_path)


class Call(nn.Module):
    """A function of its inputs, with layers."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *inputs: torch.Tensor) -> Any:
        layers = dict(self.named_children())
        return self.function(*inputs, **layers)


def close(ours: Any, expected: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(flat(ours), flat(expected), strict=True):
        one, other = torch.as_tensor(np.asarray(one)), torch.as_tensor(np.asarray(other))
        assert one.shape == other.shape and one.dtype == other.dtype
        finite = other[other.isfinite()].double().abs()
        scale = max(float(finite.max()) if finite.numel() else 0, 1e-6)
        torch.testing.assert_close(
            one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True
        )


def check(
    peer: Exporter,
    model: nn.Module,
    args: tuple[torch.Tensor, ...],
    *kinds: str,
    whole: bool = False,
) -> bytes:
    """Export there, run here and there; the file must have nodes of these kinds."""
    pte = peer.export(model, args, whole)
    assert set(kinds) <= set(kinds_of(pte))
    module = rl.load(pte, threads=2)
    with torch.no_grad():
        eager = model(*args)
    for _ in range(2):  # the second time in scratch that is no longer fresh
        close(module(*args), eager)
    close(flat(module(*args)), peer.results(pte, *args))
    return pte


X = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))

UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Sigmoid": torch.sigmoid,
    "Clamp": lambda x: x.clamp(-0.5, 0.7),
    "Floor": torch.floor,
    "SquareRoot": lambda x: x.abs().sqrt(),
    "Ceiling": torch.ceil,
    "Hardswish": F.hardswish,
    "LeakyReLU": lambda x: F.leaky_relu(x, 0.2),
    "Negate": torch.neg,
    "Square": lambda x: x.pow(2),
    "Abs": torch.abs,
    "ReciprocalSquareRoot": lambda x: (x.abs() + 0.1).rsqrt(),
    "Log": lambda x: (x.abs() + 0.1).log(),
    "Gelu": F.gelu,
    "Tanh": torch.tanh,
    "Exp": torch.exp,
    "Sin": torch.sin,
    "Cos": torch.cos,
}


def test_unary_nodes(peer: Exporter) -> None:
    def all_of(x: torch.Tensor) -> Any:
        extra = (x.relu(), F.relu6(x * 4), F.hardtanh(x), x.clamp(min=0.3), x.clamp(max=0.3))
        return (*(f(x) for f in UNARY.values()), *extra)

    check(peer, Call(all_of), (X,), *UNARY)


def test_binary_nodes_with_broadcasting(peer: Exporter) -> None:
    def all_of(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, p: nn.Module) -> Any:
        return (
            *(x + y, x - y, y - x, x * z, x / (z.abs() + 1), torch.minimum(x, z)),
            *(torch.maximum(z, x), (x + z).relu(), (x * 2 - z).clamp(-1, 1), z * y, p(x)),
        )

    model = Call(all_of, p=nn.PReLU(3))
    kinds = "Add Subtract Multiply Div Minimum Maximum PReLU".split()
    check(peer, model, (X, torch.randn(3, 1, 5), torch.randn(1)), *kinds)


def test_a_long_chain_of_elementwise_nodes(peer: Exporter) -> None:
    def long(*xs: torch.Tensor) -> Any:
        total = xs[0]
        for i in range(60):
            total = (total * xs[i % len(xs)]).tanh() + xs[(i + 1) % len(xs)]
        return total

    check(peer, Call(long), tuple(torch.randn(2, 7) for _ in range(20)))


def test_many_values_at_once(peer: Exporter) -> None:
    def wide(x: torch.Tensor) -> Any:
        parts = [(x * (i + 1)).sin() for i in range(12)]  # more than there are registers
        total = parts[-1]
        for part in reversed(parts[:-1]):
            total = part - total
        return total * sum(parts[1:], parts[0])

    check(peer, Call(wide), (torch.randn(3, 5),))


def test_products(peer: Exporter) -> None:
    def all_of(x: torch.Tensor, w: torch.Tensor, a: nn.Module, b: nn.Module, c: nn.Module) -> Any:
        y = a(x)
        return (
            *(y, F.gelu(b(x)), c(x).relu(), b(x) + x[..., :9], (a(x) + y) * 2, x.sum() * 0),
            *(torch.bmm(w, w.transpose(1, 2)), torch.bmm(x.transpose(1, 2), w) * w.mean()),
        )

    def own(x: torch.Tensor, w: torch.Tensor, a: Any, b: Any, c: Any) -> Any:
        return all_of(x, w, a, b, c)

    layers = {
        "a": nn.Linear(13, 17),
        "b": nn.Linear(13, 9, bias=False),
        "c": nn.Linear(13, 33),
    }
    args = (torch.randn(2, 6, 13), torch.randn(2, 6, 11))
    check(peer, Call(own, **layers), args, "FullyConnected", "BatchMatrixMultiply")


def test_weights_the_other_way_round(peer: Exporter) -> None:
    class Addmm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(13, 18))
            self.b = nn.Parameter(torch.randn(18))

        def forward(self, x: torch.Tensor) -> Any:
            return torch.addmm(self.b, x, self.w).tanh(), torch.mm(x, self.w)

    check(peer, Addmm(), (torch.randn(5, 13),), "FullyConnected")


CONVOLUTIONS = {
    "dense": nn.Conv2d(3, 18, 3, padding=1),
    "strided": nn.Conv2d(3, 5, (3, 2), stride=(2, 1), padding=(0, 2), bias=False),
    "dilated": nn.Conv2d(3, 4, 3, dilation=2, padding=2),
    "grouped": nn.Sequential(nn.Conv2d(3, 6, 1), nn.Conv2d(6, 4, 3, groups=2)),
    "depthwise": nn.Conv2d(3, 3, 3, groups=3, padding=1),
    "multiplied": nn.Conv2d(3, 6, 3, groups=3, stride=2),
    "transposed": nn.ConvTranspose2d(3, 6, 3, stride=2, padding=1, output_padding=1),
    "transposed groups": nn.Sequential(
        nn.Conv2d(3, 4, 1), nn.ConvTranspose2d(4, 6, (2, 3), groups=2, stride=(3, 2))
    ),
    "padded apart": nn.Sequential(nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(3, 4, 3), nn.ReLU6()),
    "normed": nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Hardswish()),
}


def test_convolutions(peer: Exporter) -> None:
    def all_of(x: torch.Tensor, **layers: nn.Module) -> Any:
        return tuple(layer(x) for layer in layers.values())

    layers = {name.replace(" ", "_"): layer for name, layer in CONVOLUTIONS.items()}
    kinds = ("Conv2d", "DepthwiseConv2d", "ConvTranspose2d", "StaticTranspose")
    check(peer, Call(all_of, **layers), (torch.randn(2, 3, 9, 11),), *kinds)


def test_convolutions_by_winograds_algorithm(peer: Exporter) -> None:
    def both(x: torch.Tensor, a: nn.Module, b: nn.Module) -> Any:
        return b(a(x)).relu() + x, b(x)

    layers = {
        "a": nn.Conv2d(16, 16, 3, padding=1),
        "b": nn.Conv2d(16, 16, 3, padding=1, bias=False),
    }
    check(peer, Call(both, **layers), (torch.randn(2, 16, 16, 12),), "Conv2d")


def test_one_channel_and_one_dimension(peer: Exporter) -> None:
    def all_of(x: torch.Tensor, line: torch.Tensor, a: nn.Module, b: nn.Module) -> Any:
        return a(x), b(line).relu()

    layers = {"a": nn.Conv2d(1, 5, 3, padding=1), "b": nn.Conv1d(4, 6, 3, padding=1, stride=2)}
    args = (torch.randn(2, 1, 7, 6), torch.randn(2, 4, 13))
    check(peer, Call(all_of, **layers), args, "DepthwiseConv2d", "Conv2d")


def test_residuals_and_branches_of_images(peer: Exporter) -> None:
    def block(x: torch.Tensor, a: nn.Module, b: nn.Module, c: nn.Module, d: nn.Module) -> Any:
        y = a(x)
        z = (b(y) + y).relu()
        w = (c(z) + b(z)).clamp(-0.5, 0.5)
        return d(w) + w * torch.sigmoid(c(w)), z.mean((2, 3), keepdim=True)

    layers = {
        "a": nn.Conv2d(3, 8, 3, padding=1),
        "b": nn.Conv2d(8, 8, 3, padding=1),
        "c": nn.Conv2d(8, 8, 1),
        "d": nn.Conv2d(8, 8, 3, padding=1, groups=8),
    }
    check(peer, Call(block, **layers), (torch.randn(2, 3, 8, 7),), "GlobalAvgPooling2d")


def test_pools(peer: Exporter) -> None:
    def all_of(x: torch.Tensor) -> Any:
        return (
            F.max_pool2d(x, 3, 2, 1),
            F.max_pool2d(x, (2, 3), 2, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.max_pool2d(x, 2, 1, dilation=2).relu(),
            x.mean((-1, -2), keepdim=True),
        )

    kinds = ("MaxPooling2d", "AvgPooling2d", "GlobalAvgPooling2d")
    check(peer, Call(all_of), (torch.randn(2, 5, 9, 11),), *kinds)


def test_nodes_that_the_partitioner_leaves_out(peer: Exporter) -> None:
    def all_of(x: torch.Tensor) -> Any:
        return (*x.max(2, keepdim=True), *x.max(3, keepdim=True), F.elu(x, 0.7))

    check(peer, Call(all_of), (torch.randn(2, 5, 9, 11),), "ArgMaxPooling2d", "ELU", whole=True)


def test_images_at_other_sizes(peer: Exporter) -> None:
    def all_of(x: torch.Tensor) -> Any:
        return tuple(
            F.interpolate(x, size, mode="bilinear", align_corners=corners)
            for size in ((14, 20), (5, 3), (1, 7))
            for corners in (False, True)
        )

    check(peer, Call(all_of), (torch.randn(2, 5, 7, 10),), "StaticResizeBilinear2D")


def test_movement(peer: Exporter) -> None:
    def all_of(x: torch.Tensor, y: torch.Tensor) -> Any:
        t = x.permute(0, 2, 3, 1)
        return (
            *(t, t.sin(), (t + 1).reshape(6, 20), x.reshape(2, 12, 5) * 2, x.unsqueeze(1)),
            *(x[:, 1:], x[..., 2:4].exp(), torch.cat([x, y], 2)),
            torch.cat([x[..., :3], t.permute(0, 3, 1, 2).exp(), x], 3),
            *(F.pad(x, (1, 2, 3, 0), value=1.5), F.pad(t, (0, 1)).cos(), F.softmax(x, -1)),
            *(F.softmax(t, -1), torch.cat([x + i for i in range(5)], 0)),
        )

    kinds = "StaticTranspose StaticReshape StaticSlice Concatenate2 Concatenate3 Concatenate5"
    kinds += " StaticConstantPad Softmax"
    check(peer, Call(all_of), (X, torch.randn(2, 3, 6, 5)), *kinds.split())


def test_six_dimensions(peer: Exporter) -> None:
    def all_of(x: torch.Tensor, y: torch.Tensor) -> Any:
        return x + y, x.permute(5, 3, 1, 0, 2, 4).exp() * 2, x.permute(1, 0, 3, 2, 5, 4) + y

    args = (torch.randn(2, 2, 3, 3, 2, 2), torch.randn(2, 1, 3, 1, 2, 1))
    check(peer, Call(all_of), args)


def test_heads_of_attention(peer: Exporter) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(24, 24) for _ in range(4))

        def heads(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(2, 7, 3, 8).transpose(1, 2)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            q, k, v = (self.heads(f(x)) for f in (self.q, self.k, self.v))
            scores = (q @ k.transpose(-1, -2)) / 8**0.5 + mask
            mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(2, 7, 24)
            return self.o(mixed) + x

    check(peer, Attention(), (torch.randn(2, 7, 24), torch.randn(1, 1, 7, 7)), "Softmax")


def test_sizes_that_only_the_call_knows(peer: Exporter) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 6, 3, padding=1)
            self.a, self.b = nn.Linear(6, 20), nn.Linear(20, 6)

        def forward(self, x: torch.Tensor) -> Any:
            y = self.conv(x).permute(0, 2, 3, 1)
            z = self.b(F.gelu(self.a(y))) + y
            return z, F.max_pool2d(x, 2, 2), torch.sigmoid(x) * x

    size = torch.export.Dim("size", min=4, max=24)
    model = Model().eval()
    pte = peer.export(model, (torch.randn(2, 3, 24, 10),), dynamic_shapes=({2: size},))
    module = rl.load(pte, threads=2)
    for height in (24, 5, 16, 4, 23, 16):
        x = torch.randn(2, 3, height, 10)
        with torch.no_grad():
            close(module(x), model(x))
        close(flat(module(x)), peer.results(pte, x))


def test_weights_in_another_file(peer: Exporter, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
    x = torch.randn(1, 3, 8, 8)
    pte, ptd, names = peer.export_apart(model, (x,), "weights")
    assert names == ["apart.pte", "weights.ptd"]
    assert len(pte) < 4 * 8 * 36 * 10 < ptd.stat().st_size
    module = rl.load(pte, data=ptd)
    with torch.no_grad():
        close(module(x), model(x))
    close(flat(module(x)), peer.results(pte, x, ptd=ptd))
    with pytest.raises(rl.LoadError, match="if weights lie in a file beside the program, load it"):
        rl.load(pte)
    # These are what packed weights are of, too.
    packed = {"packed_cache_path": str(tmp_path / "packed")}
    for _ in range(2):
        again = rl.load(pte, data=ptd, backend_options={"XnnpackBackend": packed})
        torch.testing.assert_close(again(x), module(x), rtol=0, atol=0)
    assert (tmp_path / "packed").stat().st_size > 4 * 8 * 36 * 10


@pytest.mark.parametrize(
    "name",
    [
        "resnet50_tiny",
        "gpt2_tiny",
        pytest.param("minilm_tiny", marks=pytest.mark.full),
        pytest.param("mobilenet_v2_tiny", marks=pytest.mark.full),
        pytest.param("vit_b16_tiny", marks=pytest.mark.full),
    ],
)
def test_models(peer: Exporter, name: str) -> None:
    case = build(name)
    pte = peer.export(case.module, case.args, kwargs=case.kwargs)
    module = rl.load(pte, threads=2)
    with torch.no_grad():
        eager = case.module(*case.args, **case.kwargs)
    close(module(*case.args, **case.kwargs), eager, tolerance=1e-4)
    leaves = tuple(case.leaves())
    close(flat(module(*case.args, **case.kwargs)), peer.results(pte, *leaves), tolerance=1e-4)
