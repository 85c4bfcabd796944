"""The xnnpack backend: convolutions, pools, resizing and movement give what eager gives."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xnnpack_models import DTYPES, Calls, Peer, left, lowered

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Peer:
    return Peer(executorch, tmp_path)


def _each(modules: list[Any], x: torch.Tensor, peer: Peer) -> dict[str, int]:
    modules = [m.to(x.dtype) if isinstance(m, nn.Module) else m for m in modules]
    return peer.calls(modules, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_convolutions(peer: Peer, dtype: torch.dtype) -> None:
    convolutions = [
        nn.Conv2d(6, 4, 1),
        nn.Conv2d(6, 1, 3, bias=False),
        nn.Conv2d(6, 5, (3, 2), stride=2, padding=1),
        nn.Conv2d(6, 5, (1, 5), stride=(3, 2), padding=(0, 2)),
        nn.Conv2d(6, 5, 3, dilation=2, padding=2),
        nn.Conv2d(6, 4, 3, groups=2, padding=1),
        nn.Conv2d(6, 9, 3, groups=3, stride=2),
        nn.Conv2d(6, 4, 3, padding="same"),
    ]
    x = torch.randn(2, 6, 11, 9).to(dtype)
    nodes = _each(convolutions, x, peer)
    # Of the results one has a single channel: it is only reshaped.
    assert nodes == {"Conv2d": 8, "StaticTranspose": 1 + 7, "StaticReshape": 1}


def test_one_number_stands_for_both_sides(peer: Peer) -> None:
    weight = torch.randn(4, 6, 3, 3)
    one = [[2], [1], [1], False, [0], 1]
    peer.calls([lambda x: torch.convolution(x, weight, None, *one)], torch.randn(2, 6, 11, 9))


@DTYPES
def test_depthwise_convolutions(peer: Peer, dtype: torch.dtype) -> None:
    convolutions = [
        nn.Conv2d(6, 6, 3, groups=6, padding=1),
        nn.Conv2d(6, 18, 3, groups=6, bias=False, stride=2),
        nn.Conv2d(6, 12, (5, 1), groups=6, padding=(2, 0), dilation=(1, 2)),
    ]
    nodes = _each(convolutions, torch.randn(2, 6, 11, 9).to(dtype), peer)
    assert nodes["DepthwiseConv2d"] == 3
    one = [nn.Conv2d(1, 5, 3, stride=2, padding=1), nn.Conv2d(1, 1, 2)]
    assert _each(one, torch.randn(2, 1, 7, 8).to(dtype), peer)["DepthwiseConv2d"] == 2


@DTYPES
def test_transposed_convolutions(peer: Peer, dtype: torch.dtype) -> None:
    convolutions = [
        nn.ConvTranspose2d(6, 4, 2, stride=2),
        nn.ConvTranspose2d(6, 5, 3, stride=2, padding=1, output_padding=1, bias=False),
        nn.ConvTranspose2d(6, 4, (3, 2), stride=(1, 3), padding=(1, 0), groups=2),
        nn.ConvTranspose2d(6, 6, 3, groups=6, stride=2),
        nn.ConvTranspose2d(6, 4, 3, dilation=2),
        nn.ConvTranspose2d(6, 1, 4, stride=3, padding=2, output_padding=(0, 2)),
    ]
    nodes = _each(convolutions, torch.randn(2, 6, 7, 5).to(dtype), peer)
    assert nodes["ConvTranspose2d"] == 6


@DTYPES
def test_convolutions_over_lines(peer: Peer, dtype: torch.dtype) -> None:
    convolutions = [
        nn.Conv1d(6, 4, 1),
        nn.Conv1d(6, 5, 3, stride=2, padding=1, bias=False),
        nn.Conv1d(6, 4, 3, groups=2, dilation=2, padding=2),
        nn.Conv1d(6, 12, 5, groups=6),
        nn.ConvTranspose1d(6, 4, 3, stride=2, padding=1, output_padding=1),
        nn.Sequential(nn.Conv1d(6, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Conv1d(4, 5, 2)),
    ]
    nodes = _each(convolutions, torch.randn(2, 6, 13).to(dtype), peer)
    assert (nodes["Conv2d"], nodes["DepthwiseConv2d"], nodes["ConvTranspose2d"]) == (5, 1, 1)
    assert "Clamp" not in nodes and "Multiply" not in nodes


def _settled(norm: Any) -> Any:
    norm.running_mean = torch.randn_like(norm.running_mean)
    norm.running_var = torch.rand_like(norm.running_var) + 0.5
    if norm.affine:
        norm.weight.data, norm.bias.data = torch.randn(2, norm.num_features)
    return norm


@DTYPES
def test_batch_norms(peer: Peer, dtype: torch.dtype) -> None:
    folded = [
        nn.Sequential(nn.Conv2d(6, 4, 3), _settled(nn.BatchNorm2d(4)), nn.ReLU6()),
        nn.Sequential(
            nn.Conv2d(6, 12, 3, groups=6, bias=False), _settled(nn.BatchNorm2d(12, affine=False))
        ),
        nn.Sequential(nn.ConvTranspose2d(6, 4, 3, groups=2), _settled(nn.BatchNorm2d(4))),
        nn.Sequential(
            nn.Conv2d(6, 4, 1), nn.Flatten(), nn.Linear(4 * 7 * 8, 3), _settled(nn.BatchNorm1d(3))
        ),
    ]
    x = torch.randn(2, 6, 7, 8).to(dtype)
    nodes = _each(folded, x, peer)
    assert not {"Add", "Multiply", "Clamp"} & set(nodes), nodes
    assert sum(nodes.values()) - nodes["StaticTranspose"] == 3 + 3 + 0

    apart = nn.Sequential(_settled(nn.BatchNorm2d(6)), nn.ReLU())
    assert _each([apart], x.float(), peer) == {"Multiply": 1, "Add": 1}
    pooled = nn.Sequential(nn.MaxPool2d(2), _settled(nn.BatchNorm2d(6)), nn.ReLU())
    assert _each([pooled], x, peer)["DepthwiseConv2d"] == 1
    rows = _settled(nn.BatchNorm1d(6))
    assert _each([rows], torch.randn(5, 6).to(dtype), peer) == {"Multiply": 1, "Add": 1}


@DTYPES
def test_pools(peer: Peer, dtype: torch.dtype) -> None:
    windows = [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (2, 3), "stride": (3, 1), "padding": (0, 1)},
        {"kernel_size": (5, 1), "stride": 1, "padding": (2, 0)},
    ]
    maxima = [nn.MaxPool2d(**w, ceil_mode=c) for w in windows for c in (False, True)]
    maxima += [
        nn.MaxPool2d(3, 1, dilation=2),
        nn.MaxPool2d((2, 3), dilation=(3, 1), ceil_mode=True),
    ]
    means = [nn.AvgPool2d(**w, count_include_pad=c) for w in windows for c in (False, True)]
    adaptive = [nn.AdaptiveAvgPool2d(s) for s in (1, (4, 3), (2, 9), (12, 3))]
    nodes = _each([*maxima, *means, *adaptive], torch.randn(2, 5, 12, 9).to(dtype), peer)
    assert (nodes["MaxPooling2d"], nodes["AvgPooling2d"]) == (len(maxima), len(means) + 3)
    assert (nodes["GlobalAvgPooling2d"], nodes["StaticConstantPad"]) == (1, 3)
    lines = [nn.MaxPool1d(2), nn.AvgPool1d(3, 2), nn.AdaptiveAvgPool1d(1)]
    _each(lines, torch.randn(2, 5, 12).to(dtype), peer)


@DTYPES
def test_reductions(peer: Peer, dtype: torch.dtype) -> None:
    functions: list[Any] = [
        lambda x, d=d, k=k, f=f: f(x, d, keepdim=k)
        for d, k, f in product([2, -1, (2, 3), (-1, -2)], [True, False], [torch.mean, torch.amax])
    ]
    functions.append(lambda x: x[0].mean(-1))
    functions.append(lambda x: x.max(3, keepdim=True).values)
    nodes = _each(functions, torch.randn(2, 5, 4, 7).to(dtype), peer)
    assert (nodes["GlobalAvgPooling2d"], nodes["AvgPooling2d"]) == (5, 4)


def test_places_of_maxima(peer: Peer) -> None:
    functions = [lambda x, d=d, k=k: x.max(d, keepdim=k) for d in (2, 3) for k in (True, False)]
    functions.append(lambda x: torch.max(x * 0, 3))  # all alike: the first
    nodes = _each(functions, torch.randn(2, 5, 4, 7), peer)
    assert nodes["ArgMaxPooling2d"] == 5


@DTYPES
def test_resizing(peer: Peer, dtype: torch.dtype) -> None:
    functions = [
        lambda x, s=s, a=a: F.interpolate(x, s, mode="bilinear", align_corners=a)
        for s in [(8, 14), (5, 3), (4, 20), (1, 1), (9, 7)]
        for a in (False, True)
    ]
    functions.append(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"))
    functions.append(lambda x: F.interpolate(x, scale_factor=(0.5, 3), mode="bilinear"))
    nodes = _each(functions, torch.randn(2, 3, 4, 7).to(dtype), peer)
    assert nodes["StaticResizeBilinear2D"] >= 11


@DTYPES
def test_movement(peer: Peer, dtype: torch.dtype) -> None:
    conv = nn.Conv2d(6, 6, 1).to(dtype)
    functions = [
        lambda x: [x[:, 1:4], x[:, :, -3:, 1:2], x[:, 2], x[:, :, :, -1], *x.split([1, 2, 3], 1)],
        lambda x: [c.sin() for c in conv(x).chunk(3, 2)],
        lambda x: [torch.cat([x] * n, d) for n, d in [(2, 0), (3, 1), (4, -1), (5, 2), (13, 1)]],
        lambda x: [torch.cat([conv(x), x], 1), torch.stack([x, conv(x)], 2)],
        lambda x: [
            F.pad(x, (1, 2), value=3.5),
            F.pad(conv(x), (0, 1, 2, 3)),
            F.pad(x, (0,) * 7 + (2,)),
        ],
        lambda x: [conv(x).flatten(2).transpose(1, 2), conv(x).reshape(2, 2, 3, 5, 8)],
        lambda x: [conv(x).permute(0, 2, 3, 1).reshape(-1, 6), x.flatten(), x.clone()],
        lambda x: [x.squeeze(), x[:1].squeeze(0), x.unsqueeze(1), x.unsqueeze(-1)],
        lambda x: [x.permute(3, 1, 0, 2), x.transpose(0, 1).reshape(3, 4, -1)],
        lambda x: x.expand(1, 2, 6, 5, 8),
    ]
    nodes = peer.calls(functions, torch.randn(2, 6, 5, 8).to(dtype), held=[conv])
    joined = [nodes[f"Concatenate{n}"] for n in (2, 3, 4, 5)]
    assert joined == [3, 3, 1, 3], nodes
    assert (nodes["StaticConstantPad"], nodes["Copy"]) == (3, 1)


def test_zeros_around_images_are_part_of_convolutions(peer: Peer) -> None:
    dense, depthwise = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(3, 3, (2, 3), groups=3)
    functions = [
        lambda x: [dense(y := F.pad(x, (1, 0, 2, 3))), depthwise(y)],
        lambda x: depthwise(F.pad(x, (0, 4))),
    ]
    nodes = peer.calls(functions, torch.randn(2, 3, 7, 9), held=[dense, depthwise])
    assert "StaticConstantPad" not in nodes and nodes["DepthwiseConv2d"] == 2
    kept = [
        lambda x: dense(F.pad(x, (1, 1), value=1.0)),
        lambda x: [y := F.pad(x, (0, 1)), dense(y)],
    ]
    nodes = peer.calls(kept, torch.randn(2, 3, 7, 9), held=[dense])
    assert nodes["StaticConstantPad"] == 2


def test_conversions(peer: Peer) -> None:
    functions = [
        lambda x: x.half() * 2,
        lambda x: (x.half() + 1).float() + x,
    ]
    assert _each(functions, torch.randn(3, 5), peer)["Convert"] == 2  # of which one serves both


def test_results_that_are_given_or_fixed(peer: Peer) -> None:
    fixed = torch.randn(3, 5)
    functions = [lambda x: [x.sin(), x, fixed * 2, x.t(), x.t().t(), x.clone() + fixed, x.clone()]]
    peer.calls(functions, torch.randn(3, 5))


def test_inputs_that_lie_channels_last(peer: Peer) -> None:
    x = torch.randn(2, 3, 5, 7).to(memory_format=torch.channels_last)
    conv = nn.Conv2d(3, 4, 3)
    edge = lowered(Calls(conv, torch.relu), x)
    assert not left(edge)
    peer.compare(edge, Calls(conv, torch.relu), [x])
