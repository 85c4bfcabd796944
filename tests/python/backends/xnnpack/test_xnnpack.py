"""The xnnpack backend: payloads, layouts, dynamic sizes, whole models, and what is left out."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim
from xnnpack_models import Calls, Peer, graphs_of, left, lowered, nodes_of

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.backends.xnnpack.payload import read_payload
from rushlight.partition import (
    BackendDetails,
    DelegationSpec,
    PreprocessResult,
    SupportedOperatorPartitioner,
)
from rushlight.schema import xnnpack as fb
from rushlight.serialize.pte import read_pte

if TYPE_CHECKING:
    from conftest import ExecuTorch


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Peer:
    return Peer(executorch, tmp_path)


class Worked(nn.Module):
    """A model with a layer of nearly every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(4, 8, 3, groups=4, bias=False)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = self.depthwise(self.dense(x).relu()).mean((2, 3), keepdim=True)
        return self.head(pooled.flatten(1)).softmax(-1)


X = torch.randn(1, 3, 10, 10)


def _fields(graph: fb.Graph) -> list[tuple[str, dict[str, Any], Any]]:
    """Kinds, fields but numbers of tensors, and limits of a graph's nodes."""
    kinds = []
    for node in graph.xnodes:
        operation = node.xnode_union
        names = [f.name for f in fb.XNNPACK.tables[type(operation)] if not f.name.endswith("_id")]
        fields = {name: getattr(operation, name) for name in names}
        kinds.append((type(operation).__name__, fields, node.output_min_max))
    return kinds


@pytest.mark.interop
def test_the_payload_is_what_executorch_writes(executorch: ExecuTorch, tmp_path: Path) -> None:
    """Except that a transpose which only moves sizes of 1 is part of the reshape behind it."""
    model = Worked().eval()
    torch.export.save(torch.export.export(model, (X,)), tmp_path / "model.pt2")
    executorch.call(
        "export", program=tmp_path / "model.pt2", pte=tmp_path / "theirs.pte", xnnpack=True
    )
    file = read_pte((tmp_path / "theirs.pte").read_bytes())
    theirs = read_payload(bytes(file.delegate_blobs[0]))
    [ours] = graphs_of(lowered(model, X))
    expected = _fields(theirs)
    assert expected.pop(4)[:2] == (
        "StaticTranspose",
        {"num_dims": 4, "perm": [0, 3, 1, 2], "flags": 0},
    )
    assert _fields(ours) == expected
    assert (ours.version, ours.num_externs) == (theirs.version, theirs.num_externs)
    keys = [{c.named_key for c in g.constant_data} for g in (ours, theirs)]
    assert keys[0] == keys[1] and len(keys[0]) == 6
    externs = [
        [
            (v.xvalue_union.external_id, v.xvalue_union.flags, v.xvalue_union.dims)
            for v in g.xvalues
            if v.xvalue_union.flags
        ]
        for g in (ours, theirs)
    ]
    assert externs[0] == externs[1] == [(0, 1, [1, 3, 10, 10]), (1, 2, [1, 5])]


def test_header_and_versions() -> None:
    [module] = lowered_modules(lowered(Worked(), X).exported_program())
    payload = module.processed_bytes
    assert payload[:10] == b"\0\0\0\0XH00" + (30).to_bytes(2, "little")
    start, size, constants = (int.from_bytes(payload[i : i + 4], "little") for i in (10, 14, 18))
    assert start == 32 and payload[36:40] == b"XN01"
    assert constants == len(payload) == -(-(start + size) // 16) * 16
    graph = read_payload(payload)
    older = payload[32:36] + b"XN00" + payload[40 : 32 + size]  # without a header
    assert read_payload(older) == graph


def test_weights_are_named_by_their_bytes() -> None:
    model = Worked()
    edge = lowered(model, X)
    [module] = lowered_modules(edge.exported_program())
    store = module.named_data_store_output
    assert store is not None and len(store.pte_data) == 5
    for key, entry in store.pte_data.items():
        data = store.buffers[entry.buffer_index]
        assert key == hashlib.sha256(data).hexdigest() and entry.alignment % 16 == 0
    head = model.head.weight.detach().numpy().tobytes()
    assert hashlib.sha256(head).hexdigest() in store.pte_data


def test_two_delegates_share_weights() -> None:
    layer = nn.Linear(8, 8)
    model = Calls(lambda x: layer(F.layer_norm(layer(x), [8])), held=[layer])
    edge = lowered(model, torch.randn(3, 8))
    assert len(graphs_of(edge)) == 2
    data = read_pte(bytes(edge.to_executorch().buffer)).named_data
    assert len([key for key in data if len(key) == 64]) == 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 8, 1), nn.Sigmoid())
        self.norm = nn.BatchNorm2d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.silu(self.one(x))
        y = self.two(F.pad(F.hardswish(y), (1, 0, 1, 0), value=1.0)[:, :, 1:, 1:]) + x
        y = torch.cat([y * self.gate(y), F.avg_pool2d(x, 3, 1, 1)], 1)
        return F.interpolate(self.norm(y), scale_factor=2, mode="bilinear").softmax(1)


@pytest.mark.interop
def test_images_are_moved_once_in_and_once_out(peer: Peer) -> None:
    nodes = peer.whole(Block(), torch.randn(2, 8, 6, 7))
    assert nodes.count("StaticTranspose") == 2
    assert nodes[0] == nodes[-1] == "StaticTranspose"


def test_nodes_lead_to_python_lines() -> None:
    [module] = lowered_modules(lowered(Worked(), X).exported_program())
    sources = module.sources()
    assert sorted(map(int, sources)) == list(range(7))
    lines = {key: {line.text for _, _, line in rows} for key, rows in sources.items()}
    assert all("pooled = " in str(lines[str(i)]) for i in range(4))
    assert all("return self.head" in str(lines[str(i)]) for i in range(4, 7))
    assert [op for _, op, _ in sources["1"]] == ["aten.convolution.default", "aten.relu.default"]


class ReadsFar(BackendDetails):
    overread = 200

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        return PreprocessResult(b"")


def test_arenas_have_the_room_that_backends_read_beyond_tensors() -> None:
    def arena(partitioner: Any) -> int:
        exported = torch.export.export(Calls(torch.sin), (torch.randn(16),))
        edge = rl.to_edge_transform_and_lower(exported, partitioner=partitioner)
        sizes: list[int] = (
            edge.to_executorch().executorch_program.execution_plan[0].non_const_buffer_sizes
        )
        return sizes[1]

    plain = arena([])
    assert arena([XnnpackPartitioner()]) == plain + 64
    spec = DelegationSpec("ReadsFar")
    assert arena([SupportedOperatorPartitioner(spec, lambda node: None)]) == plain + 200


IMAGE = torch.randn(2, 4, 6, 6)
BOOLS = torch.randn(2, 4, 6, 6) > 0
REFUSED: list[tuple[Any, str]] = [
    (lambda x: F.gelu(x, approximate="tanh"), "the exact one"),
    (lambda x: x**2.5, "no power of 2.5"),
    (lambda x: x.double().sin(), "float64"),
    (lambda x: x.clamp(2, 1), "its limits are 2.0 and 1.0"),
    (lambda x: F.selu(x), "no scales|XNNPACK has no"),
    (lambda x: F.max_pool2d(x, 2, return_indices=True)[1], "its indices are used"),
    (lambda x: F.max_pool2d(x, 1, 2), "for which XNNPACK has no pool"),
    (lambda x: F.avg_pool2d(x, 2, ceil_mode=True), "its ceil_mode is True"),
    (lambda x: F.avg_pool2d(x, 2, divisor_override=3), "no divisor_override"),
    (lambda x: F.avg_pool2d(x[0], 2), "XNNPACK pools images"),
    (lambda x: F.adaptive_avg_pool2d(x, 4), "its windows differ in size"),
    (lambda x: x.mean(1), "height and width"),
    (
        lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
        "its scale differs from the ratio",
    ),
    (lambda x: F.interpolate(x, scale_factor=2.0), "XNNPACK has no aten.upsample_nearest2d"),
    (lambda x: F.conv2d(x, x[:, :, :3, :3]), "its weight is computed"),
    (lambda x: F.conv3d(x[None], torch.randn(3, 2, 2, 2, 2)), "one or two dimensions"),
    (lambda x: x[..., ::2], "its step is not 1, and XNNPACK's slices take each element"),
    (lambda x: x.sin().expand(3, 2, 4, 6, 6), "it repeats elements"),
    (lambda x: torch.where(x > 1, x, x * 2), "PReLU only"),
    (lambda x: x.half().max(2)[1], "computes for float32 only"),
    (lambda x: F.linear(x.half(), x.half()[0, 0]), "in float32 only"),
    (lambda x: x.reshape(1, 2, 1, 4, 1, 6, 6).sin(), "more than 6 dimensions"),
    (lambda x: x.sum().sin(), "no dimensions"),
    (lambda x: x[:0].sin(), "no elements"),
    (lambda x: x.permute(1, 0, 2, 3).flatten(1), "too small to be worth a call"),
    (lambda x: F.layer_norm(x, [6]), "XNNPACK has no aten.native_layer_norm"),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED, ids=[r for _, r in REFUSED])
def test_what_is_left_out_has_its_reason(function: Any, reason: str) -> None:
    reasons = left(lowered(Calls(function), IMAGE))
    assert any(re.search(reason, r) for r in reasons.values()), reasons


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        parts = self.enter(x).split(16, -1)
        q, k, v = (p.reshape(batch, length, 2, 8).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return self.leave(y.reshape(batch, length, 16))


BATCH, HEIGHT, WIDTH = Dim("b", min=1, max=8), Dim("h", min=8, max=32), Dim("w", min=8, max=40)
LENGTH = Dim("l", min=2, max=16)


@pytest.mark.interop
def test_dynamic_sizes(peer: Peer) -> None:
    conv = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    head = nn.Linear(6, 5)
    model = Calls(
        lambda x: head(conv(x).mean((2, 3))).softmax(-1),
        lambda x: torch.cat([conv(x), conv(x).tanh()], 1),
        lambda x: F.pad(x, (1, 2)) * 2,
        lambda x: x[:, 1:] + x[:, :2].exp(),
        held=[conv, head],
    )
    peer.whole(
        *(model, torch.randn(3, 3, 16, 16)),
        dynamic_shapes=(({0: BATCH, 2: HEIGHT, 3: WIDTH},),),
        more=[[torch.randn(s)] for s in [(1, 3, 8, 40), (8, 3, 32, 23), (2, 3, 9, 8)]],
    )
    lines = Calls(
        *(nn.Conv1d(6, 4, 3), lambda x: x.transpose(0, 2) + 1, lambda x: torch.stack([x, x.sin()]))
    )
    peer.whole(
        *(lines, torch.randn(3, 6, 9)),
        dynamic_shapes=(({0: BATCH},),),
        more=[[torch.randn(n, 6, 9)] for n in (1, 8)],
    )


@pytest.mark.interop
@pytest.mark.parametrize("dims", [{0: BATCH}, {1: LENGTH}, {0: BATCH, 1: LENGTH}], ids=str)
def test_attention_with_dynamic_sizes(peer: Peer, dims: Any) -> None:
    model, x = Attention().eval(), torch.randn(3, 6, 16)
    edge = lowered(model, x, dynamic_shapes=(dims,))
    peer.compare(edge, model, [x])
    sizes = [
        (1 if 0 in dims else 3, 2 if 1 in dims else 6),
        (8 if 0 in dims else 3, 16 if 1 in dims else 6),
    ]
    peer.compare(edge, model, *([torch.randn(*s, 16)] for s in sizes))
    nodes = nodes_of(edge)
    assert nodes.count("FullyConnected") == 2 and nodes.count("BatchMatrixMultiply") == 2
    assert bool(left(edge)) == (len(dims) + (0 not in dims) > 1)


MODELS = [
    *("mobilenet_v2_tiny", "resnet50_tiny", "minilm_tiny"),
    *(pytest.param(n, marks=pytest.mark.full) for n in ("vit_b16_tiny", "gpt2_tiny", "unet_tiny")),
]


@pytest.mark.interop
@pytest.mark.parametrize("name", MODELS)
def test_models(peer: Peer, models: ModuleType, name: str) -> None:
    case = models.build(name)
    edge = rl.to_edge_transform_and_lower(case.export(), partitioner=[XnnpackPartitioner()])
    actual = peer.results(bytes(edge.to_executorch().buffer), *case.leaves())
    with torch.no_grad():
        eager = flat(case.module(*case.args, **case.kwargs))
    for one, other in zip(actual, eager, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-4 * float(other.abs().max()))
    nodes = nodes_of(edge)
    if name in ("mobilenet_v2_tiny", "resnet50_tiny"):
        assert not left(edge) and nodes.count("StaticTranspose") == 1
        assert "Clamp" not in nodes and "Multiply" not in nodes
    if name == "minilm_tiny":
        assert nodes.count("FullyConnected") == 12 and nodes.count("BatchMatrixMultiply") == 4
