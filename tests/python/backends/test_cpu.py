"""The cpu backend: what it takes equals eager, what it fuses, and what it says no to."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.backends.cpu.tiles import TERMS
from rushlight.partition import get_non_lowered_nodes
from rushlight.schema import cpu_engine as fb

aten = torch.ops.aten


def lowered(model: nn.Module, *args: Any) -> rl.EdgeProgramManager:
    exported = torch.export.export(model.eval(), args)
    return rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])


def steps_of(edge: rl.EdgeProgramManager) -> list[str]:
    """The steps of all delegates, with a + for those that finish their results."""
    graphs = [fb.unpack(m.processed_bytes) for m in lowered_modules(edge.exported_program())]
    return [
        type(step.operation).__name__ + ("+" if getattr(step.operation, "finish", None) else "")
        for graph in graphs
        for step in graph.steps
    ]


def whole(model: nn.Module, *args: Any, tolerance: float = 1e-5) -> list[str]:
    """Holds the results to eager's, of the output's scale; the steps of the only delegate."""
    edge = lowered(model, *args)
    left = {
        n.name: n.meta.get("declined") for n in get_non_lowered_nodes(edge.exported_program().graph)
    }
    assert not left
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True, threads=2)
    with torch.no_grad():
        equal(module(*args), model(*args), tolerance)
        equal(module(*args), model(*args), tolerance)  # scratch that is no longer fresh
    return steps_of(edge)


def equal(ours: Any, eager: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(flat(ours), flat(eager), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        if not other.is_floating_point():
            assert torch.equal(one, other)
            continue
        finite = other[other.isfinite()].abs()
        scale = float(finite.max()) if finite.numel() else 1.0
        torch.testing.assert_close(
            one, other, rtol=tolerance, atol=tolerance * max(scale, 1e-6), equal_nan=True
        )


class Call(nn.Module):
    """A function of its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def call(function: Callable[..., Any], *inputs: torch.Tensor) -> list[str]:
    return whole(Call(function), *inputs)


IMAGE = torch.randn(2, 6, 9, 11)
LAST = IMAGE.to(memory_format=torch.channels_last)
X = torch.randn(3, 5, 7)


# --- operators ------------------------------------------------------------------------------------

UNARY = {
    target: target
    for target in TERMS
    if len(
        [
            a
            for a in target._schema.arguments
            if a.default_value is None and not a.has_default_value()
        ]
    )
    == 1
}


@pytest.mark.parametrize("target", UNARY, ids=str)
def test_functions(target: Any) -> None:
    x = torch.cat([torch.randn(200) * 3, torch.tensor([0.0, -0.0, 1.0, -1.0, 20.0, -20.0])])
    if target is aten.logical_not.default:
        x = x > 0
    function = (lambda a: a.clamp(-0.5, 1)) if target is aten.clamp.default else target
    assert call(function, x.reshape(2, -1)) == ["Elementwise"]


@pytest.mark.parametrize("target", [t for t in TERMS if t not in UNARY], ids=str)
def test_functions_of_two(target: Any) -> None:
    x, y = torch.rand(3, 40) + 0.5, torch.rand(3, 40) + 0.5
    y[:, ::3] = x[:, ::3]
    if target is aten.where.self:
        steps = call(lambda a, b: torch.where(a > b, a, b), x, y)
    elif "logical" in str(target):
        steps = call(target, x > 1, y > 1)
    elif "Scalar" in str(target):
        steps = call(lambda a: target(a, 0.75), x)
    else:
        steps = call(target, x, y)
    assert steps == ["Elementwise"]


@pytest.mark.parametrize("alpha", [1, 2.5])
def test_alpha(alpha: float) -> None:
    y = torch.randn(7)
    call(lambda a, b: torch.add(a, b, alpha=alpha), X, y)
    call(lambda a, b: torch.sub(a, b, alpha=alpha), X, y)


@pytest.mark.parametrize("exponent", [-1, -0.5, 0, 0.5, 1, 2, 3, 2.5])
def test_powers(exponent: float) -> None:
    call(lambda a: a**exponent, torch.rand(3, 5) + 0.1)


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (5, 1), (1, 7), (3, 1, 7), (3, 5, 1), (3, 1, 1), (1, 1, 1)]
)
def test_broadcasting(shape: tuple[int, ...]) -> None:
    y = torch.randn(shape)
    assert call(lambda a, b: (a * b - b).sigmoid() + a, X, y) == ["Elementwise"]
    call(lambda a, b: b - a, X, y)


def test_layouts_of_operands() -> None:
    bias = torch.randn(6, 1, 1)
    call(lambda a, b: (a + b).relu(), LAST, bias)
    call(lambda a, b: a * b + 1, LAST, IMAGE)
    call(lambda a: a.transpose(1, 2) + a.transpose(1, 2) * 2, X)
    call(lambda a, b: a.permute(2, 0, 1)[1:, :, ::2] * b, X, torch.randn(6, 3, 3))


def test_empty_and_single() -> None:
    call(lambda a: a.exp() + 1, torch.randn(0, 4))
    call(lambda a: a.exp() + 1, torch.randn(()))
    whole(nn.Linear(4, 3), torch.randn(0, 4))
    whole(nn.Linear(4, 3), torch.randn(4))


def test_nan_and_infinity() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, 1.0])
    for function in (
        torch.relu,
        torch.sigmoid,
        torch.tanh,
        F.silu,
        lambda a: a.clamp(-1, 1),
    ):
        call(function, x)
    gelu = rl.load(bytes(lowered(nn.GELU(), x).to_executorch().buffer))(x)
    assert gelu[0].isnan() and gelu[1] == float("inf") and gelu[2] == 0  # eager's has NaN for all
    model = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    whole(model, x.expand(3, 5).contiguous())


@pytest.mark.parametrize("rows", [1, 2, 13, 14, 15, 29])
@pytest.mark.parametrize("columns", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("depth", [1, 8, 37])
def test_linear(rows: int, columns: int, depth: int) -> None:
    assert whole(nn.Linear(depth, columns), torch.randn(rows, depth)) == ["Product"]


def test_products() -> None:
    weight, bias = nn.Parameter(torch.randn(7, 9)), nn.Parameter(torch.randn(9))

    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = weight, bias

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            flat = x.reshape(-1, 7)
            return (
                torch.addmm(self.bias, flat, self.weight),
                flat @ self.weight,
                flat @ flat.t(),
                x @ y,
            )

    assert Counter(whole(Products(), X, torch.randn(3, 7, 4))) == {"Product": 2, "BatchProduct": 2}


@pytest.mark.parametrize("image", [IMAGE, LAST], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 1},
        {"kernel_size": 1, "stride": 2},
        {"kernel_size": 3, "padding": 1},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": (0, 2)},
        {"kernel_size": 3, "dilation": 2, "padding": 2},
        {"kernel_size": 3, "groups": 2, "bias": False},
        {"kernel_size": 3, "groups": 6, "padding": 1},
        {"kernel_size": (2, 3), "groups": 6, "stride": 2, "dilation": (1, 2)},
        {"kernel_size": 5, "padding": "same"},
    ],
    ids=str,
)
def test_convolutions(image: torch.Tensor, settings: dict[str, Any]) -> None:
    steps = whole(nn.Conv2d(6, 12, **settings), image)
    assert steps.count("Convolution") == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
        {"kernel_size": (3, 2), "groups": 2},
        {"kernel_size": 4, "stride": (1, 3), "bias": False},
    ],
    ids=str,
)
def test_transposed_convolutions(settings: dict[str, Any]) -> None:
    whole(nn.ConvTranspose2d(6, 8, **settings), IMAGE)


def test_convolutions_over_lines() -> None:
    line = torch.randn(2, 6, 20)
    whole(nn.Conv1d(6, 5, 3, padding=1), line)
    whole(nn.Conv1d(6, 6, 3, groups=6, stride=2), line)
    whole(nn.ConvTranspose1d(6, 4, 3, stride=2), line)


@pytest.mark.parametrize("value", [0.0, 1.5])
@pytest.mark.parametrize("pad", [(1, 2, 0, 3), (2, 0), (-1, 1, 1, -2)])
def test_pads(pad: tuple[int, ...], value: float) -> None:
    call(lambda a: F.pad(a, pad, value=value), IMAGE)
    convolution = nn.Conv2d(6, 4, 3, stride=2)
    steps = whole(nn.Sequential(Call(lambda a: F.pad(a, pad, value=value)), convolution), IMAGE)
    assert (steps == ["Convolution", "Copy"]) == (value == 0 and min(pad) >= 0)


@pytest.mark.parametrize("image", [IMAGE, LAST], ids=["contiguous", "channels_last"])
def test_pools(image: torch.Tensor) -> None:
    call(lambda a: F.max_pool2d(a, 3, 2, 1), image)
    call(lambda a: F.max_pool2d(a, (2, 3), dilation=2), image)
    call(lambda a: F.avg_pool2d(a, 3, 2, 1), image)
    call(lambda a: F.avg_pool2d(a, 2, count_include_pad=False, padding=1), image)
    call(lambda a: F.avg_pool2d(a, 2, divisor_override=3), image)
    call(lambda a: F.adaptive_avg_pool2d(a, 1), image)


def test_norms() -> None:
    for width in (1, 5, 16, 33, 100):
        x = torch.randn(6, width)
        assert whole(nn.LayerNorm(width), x) == ["Norm"]
        assert whole(nn.RMSNorm(width, eps=1e-6), x) == ["Norm"]
        whole(nn.LayerNorm(width, elementwise_affine=False), x + 100, tolerance=1e-4)
    whole(nn.LayerNorm((5, 7)), X)
    for image in (IMAGE, LAST):
        whole(nn.GroupNorm(3, 6), image)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim: int) -> None:
    call(lambda a: a.softmax(dim), X * 10)
    call(lambda a: a.log_softmax(dim), X * 10)


@pytest.mark.parametrize("image", [IMAGE, LAST], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize("dims", [[0], [1], [-1], [2, 3], [1, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions(image: torch.Tensor, dims: list[int], keep: bool) -> None:
    call(lambda a: (a.mean(dims, keep), a.sum(dims, keep)), image)
    call(lambda a: (a.amax(dims, keep), a.amin(dims, keep)), image)


def test_movement() -> None:
    call(lambda a, b: torch.cat([a, b[:, 1:], a * 2], 1), X, torch.randn(3, 4, 7))
    call(lambda a: torch.cat([a, a], 1), LAST)
    call(lambda a: a.permute(2, 0, 1).reshape(7, 15)[2:5].unsqueeze(1).expand(3, 4, 15), X)
    call(lambda a: [b.contiguous() for b in a.split([1, 2, 2], 1)], X)
    call(lambda a: a[1, :, 3].clone(), X)
    whole(nn.Embedding(10, 6), torch.randint(0, 10, (2, 5)))


def test_an_index_that_is_not_there(tmp_path: Path) -> None:
    model = nn.Embedding(10, 6)
    module = rl.load(
        bytes(lowered(model, torch.zeros(3, dtype=torch.int64)).to_executorch().buffer)
    )
    with pytest.raises(rl.RunError, match=r"index 10 at position 1 is not within 0\.\.9"):
        module(torch.tensor([1, 10, 2]))


# --- attention ------------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, mask: torch.Tensor | None = None, **options: Any) -> None:
        super().__init__()
        self.register_buffer("mask", mask)
        self.options = options

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = F.scaled_dot_product_attention(q, k, v, self.mask, **self.options)
        return out.transpose(1, 2).reshape(q.shape[0], q.shape[2], -1)


def heads(batch: int, n: int, length: int, width: int) -> torch.Tensor:
    """As a projection leaves them: [batch, length, heads, width] in memory."""
    return torch.randn(batch, length, n, width).transpose(1, 2)


@pytest.mark.parametrize("lengths", [(1, 1), (1, 40), (17, 17), (33, 65)])
@pytest.mark.parametrize("width", [1, 8, 33, 64])
def test_attention(lengths: tuple[int, int], width: int) -> None:
    q, k, v = (heads(2, 3, n, width) for n in (lengths[0], lengths[1], lengths[1]))
    inputs = [x.contiguous() for x in (q, k, v)]
    assert whole(Attention(), *inputs) == ["Attention"]
    whole(Attention(scale=0.3, is_causal=lengths[0] == lengths[1]), *inputs)
    whole(Attention(torch.randn(lengths)), *inputs)


def test_attention_with_masks() -> None:
    inputs = [heads(2, 4, 12, 16).contiguous() for _ in range(3)]
    lower = torch.ones(12, 12, dtype=torch.bool).tril()
    assert whole(Attention(lower), *inputs) == ["Attention"]
    assert whole(Attention(torch.ones(2, 1, 12, 12, dtype=torch.bool)), *inputs) == ["Attention"]
    some = torch.rand(2, 1, 12, 12) > 0.5
    some[:, :, 3] = False  # a query that sees nothing
    whole(Attention(some), *inputs)
    computed = Call(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > 0))
    whole(computed, *inputs, torch.randn(2, 4, 12, 12))


def test_grouped_heads() -> None:
    q, k, v = heads(1, 6, 10, 8), heads(1, 2, 10, 8), heads(1, 2, 10, 8)
    inputs = [x.contiguous() for x in (q, k, v)]
    assert whole(Attention(enable_gqa=True, is_causal=True), *inputs) == ["Attention"]


# --- fusion ---------------------------------------------------------------------------------------


def test_what_follows_a_product_is_part_of_it() -> None:
    linear = nn.Linear(8, 20)
    x, residual = torch.randn(3, 5, 8), torch.randn(3, 5, 20)
    assert whole(nn.Sequential(linear, nn.ReLU()), x) == ["Product+"]
    assert whole(nn.Sequential(linear, nn.GELU()), x) == ["Product+"]
    assert whole(nn.Sequential(linear, nn.GELU(approximate="tanh")), x) == ["Product+"]
    assert whole(Call(lambda a, r: F.silu(linear(a)) * r + r), x, residual) == ["Product+"]
    assert whole(Call(lambda a, r: linear(a) + r), x, torch.randn(20)) == ["Product+"]
    # What repeats in another way than rows do is written out first.
    assert whole(Call(lambda a, r: linear(a) + r), x, torch.randn(5, 1)) == ["Copy", "Product+"]


def test_what_follows_a_convolution_is_part_of_it() -> None:
    one, two = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 6, 1)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.norm = one, two, nn.BatchNorm2d(6)
            self.norm.running_mean = torch.randn(6)
            self.norm.running_var = torch.rand(6) + 0.5

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inner = F.hardswish(self.norm(self.one(x)))
            return F.relu(self.two(inner) + inner)

    for image in (IMAGE, LAST):  # the last step makes the result row-major
        assert whole(Block(), image) == ["Convolution+", "Convolution+", "Copy"]


def test_a_chain_is_one_step_however_long() -> None:
    def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = torch.tanh(x) * y + x
        return x

    assert call(chain, X, torch.randn(7)) == ["Elementwise"]


def test_a_chain_that_needs_too_many_registers_is_cut() -> None:
    def wide(*inputs: torch.Tensor) -> torch.Tensor:
        terms = [x.exp() for x in inputs]
        terms = [a * b for a in terms for b in terms]
        return sum(terms[1:], terms[0])

    steps = call(wide, *(torch.randn(4) for _ in range(20)))
    assert set(steps) == {"Elementwise"} and len(steps) > 1


def test_a_value_that_others_need_is_stored() -> None:
    linear = nn.Linear(8, 8)
    steps = whole(
        Call(lambda a: (linear(a), F.relu(linear(a)), linear(a).sigmoid() + a)),
        X[..., :1].expand(3, 5, 8).contiguous(),
    )
    assert "Product" in steps


def test_a_transformer_needs_no_copies() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(32), nn.LayerNorm(32)])
            self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
            self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            parts = self.qkv(self.norms[0](x)).chunk(3, -1)
            q, k, v = (p.unflatten(-1, (4, 8)).transpose(1, 2) for p in parts)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.down(F.gelu(self.up(self.norms[1](x))))

    steps = Counter(whole(Layer(), torch.randn(2, 9, 32)))
    assert steps == {"Norm": 2, "Product": 1, "Product+": 3, "Attention": 1}


# --- models ---------------------------------------------------------------------------------------

MODELS = ["mobilenet_v2", "resnet50", "vit_b16", "minilm", "gpt2", "unet"]


@pytest.mark.parametrize("name", [f"{m}_tiny" for m in MODELS])
def test_models(models: ModuleType, name: str) -> None:
    case = models.build(name)
    edge = rl.to_edge_transform_and_lower(case.export(), partitioner=[CpuPartitioner()])
    file = bytes(edge.to_executorch().buffer)
    inputs = case.leaves()
    with torch.no_grad():
        eager = case.module(*case.args, **case.kwargs)
    one, two = (rl.load(file, threads=n) for n in (1, 2))
    first = one(*inputs)
    equal(first, eager, 2e-4)
    for a, b in zip(flat(first), flat(two(*inputs)), strict=True):
        assert torch.equal(a, b)


RUN = """
import sys, numpy as np, rushlight as rl
file, data, out = sys.argv[1:]
inputs = np.load(data)
module = rl.load(file)
np.save(out, module(*(inputs[k] for k in inputs)))
"""


@pytest.mark.parametrize("isa", ["plain", "avx2", "avx512"])
def test_each_instruction_set_gives_the_same(models: ModuleType, isa: str, tmp_path: Path) -> None:
    for name in ("mobilenet_v2_tiny", "vit_b16_tiny"):
        case = models.build(name)
        edge = rl.to_edge_transform_and_lower(case.export(), partitioner=[CpuPartitioner()])
        (tmp_path / "model.pte").write_bytes(edge.to_executorch().buffer)
        np.savez(tmp_path / "in.npz", *(x.numpy() for x in case.leaves()))
        files = [str(tmp_path / n) for n in ("model.pte", "in.npz", "out.npy")]
        env = {**os.environ, "RUSHLIGHT_CPU": isa}
        subprocess.run([sys.executable, "-c", RUN, *files], check=True, env=env)
        with torch.no_grad():
            eager = case.module(*case.args, **case.kwargs)
        equal(torch.from_numpy(np.load(tmp_path / "out.npy")), eager, 2e-4)


def test_by_name() -> None:
    program = rl.export(nn.Linear(4, 3), (torch.randn(2, 4),), backend="cpu")
    assert "cpu" in str(program.report()).lower()
    assert rl.load(program.buffer)(torch.ones(2, 4)).shape == (2, 3)


# --- what it says no to ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [
        (lambda a: a.double() * 2, (X,), "float64; tiles hold float32"),
        (lambda a: a + 1, (torch.ones(3, dtype=torch.int64),), "int64; tiles hold float32"),
        (lambda a: a.cumsum(0), (X,), "the engine has no aten.cumsum.default"),
        (lambda a, w: F.linear(a, w), (X, torch.randn(4, 7)), "its weight is computed"),
        (lambda a: F.max_pool2d(a, 2, ceil_mode=True), (IMAGE,), "do not round up"),
    ],
)
def test_reasons(function: Callable[..., Any], inputs: tuple[Any, ...], reason: str) -> None:
    edge = lowered(Call(function), *inputs)
    left = get_non_lowered_nodes(edge.exported_program().graph)
    said = [r for node in left for r in node.meta.get("declined", {}).values()]
    assert any(reason in text for text in said), said


def test_dynamic_sizes_are_left_to_the_kernels() -> None:
    batch = torch.export.Dim("batch", max=8)
    exported = torch.export.export(
        nn.Linear(4, 3), (torch.randn(2, 4),), dynamic_shapes=[{0: batch}]
    )
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    [node] = get_non_lowered_nodes(edge.exported_program().graph)
    assert "dynamic size" in str(node.meta["declined"])


def _payload_of(file: bytes) -> tuple[int, int]:
    at = file.index(b"RC01") - 4
    return at, at + 2000


def test_damaged_payloads_never_crash() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5))
    x = torch.randn(1, 3, 6, 6)
    file = bytes(lowered(model, x).to_executorch().buffer)
    begin, end = _payload_of(file)
    source = random.Random(1)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(file)
        for _ in range(source.randint(1, 3)):
            damaged[source.randrange(begin, min(end, len(file)))] = source.choice((0, 1, 127, 255))
        try:
            rl.load(bytes(damaged))(x)
        except rl.Error:
            refused += 1
    assert refused > 300


def test_a_newer_payload() -> None:
    edge = lowered(nn.Linear(4, 3), torch.randn(2, 4))
    [part] = lowered_modules(edge.exported_program())
    graph = fb.unpack(part.processed_bytes)
    graph.version = 2
    part.processed_bytes = fb.pack(graph)
    with pytest.raises(rl.LoadError, match=r"the payload has version 2, this runtime reads 1 to 1"):
        rl.load(bytes(edge.to_executorch().buffer))
