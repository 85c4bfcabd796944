"""The cpu backend: the calls that it fuses, whole models, and calls that it does not take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cpu_models import IMAGE, LAST, Call, X, call, equal, lowered, whole
from torch import nn

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.partition import get_non_lowered_nodes
from rushlight.schema import cpu_engine as fb

aten = torch.ops.aten

# --- fusion ---------------------------------------------------------------------------------------


def test_what_follows_a_product_is_part_of_it() -> None:
    linear = nn.Linear(8, 20)
    x, residual = torch.randn(3, 5, 8), torch.randn(3, 5, 20)
    assert whole(nn.Sequential(linear, nn.ReLU()), x) == ["Product+"]
    assert whole(nn.Sequential(linear, nn.GELU()), x) == ["Product+"]
    assert whole(nn.Sequential(linear, nn.GELU(approximate="tanh")), x) == ["Product+"]
    assert whole(Call(lambda a, r: F.silu(linear(a)) * r + r), x, residual) == ["Product+"]
    assert whole(Call(lambda a, r: linear(a) + r), x, torch.randn(20)) == ["Product+"]
    # A tensor that repeats in another way than by rows is copied out first.
    assert whole(Call(lambda a, r: linear(a) + r), x, torch.randn(5, 1)) == ["Copy", "Product+"]


@pytest.mark.parametrize("rows", [1, 5, 15, 40])
def test_a_residual_is_added_in_registers(rows: int) -> None:
    widths = (1, 7, 17, 32, 40)
    linears = [nn.Linear(9, width) for width in widths]
    x, residuals = torch.randn(rows, 9), [torch.randn(rows, width) for width in widths]
    model = Call(lambda x, *rs: [F.relu(r + f(x)) for r, f in zip(rs, linears, strict=True)])
    edge = lowered(model, x, *residuals)
    [part] = lowered_modules(edge.exported_program())
    nodes = fb.unpack(part.processed_bytes).nodes
    assert len(nodes) == len(widths)
    for node in nodes:
        assert node.operation.epilogue.added and node.operation.epilogue.program is None
    module = rl.load(bytes(edge.to_executorch().buffer))
    with torch.no_grad():
        equal(module(x, *residuals), model(x, *residuals))
    grouped = [nn.Conv2d(4, 2 * width, 3, padding=1, groups=2) for width in widths]
    whole(
        Call(lambda x, *rs: [f(x) + r for r, f in zip(rs, grouped, strict=True)]),
        torch.randn(2, 4, 5, rows),
        *(torch.randn(2, 2 * width, 5, rows) for width in widths),
    )


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

    for image in (IMAGE, LAST):  # the last copy makes the result row-major
        assert whole(Block(), image) == ["Convolution+", "Convolution+", "Copy"]


def test_a_chain_is_one_node_however_long() -> None:
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

    operators = call(wide, *(torch.randn(4) for _ in range(20)))
    assert set(operators) == {"Elementwise"} and len(operators) > 1


def test_a_value_that_others_need_is_stored() -> None:
    linear = nn.Linear(8, 8)
    operators = whole(
        Call(lambda a: (linear(a), F.relu(linear(a)), linear(a).sigmoid() + a)),
        X[..., :1].expand(3, 5, 8).contiguous(),
    )
    assert "Product" in operators


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

    operators = Counter(whole(Layer(), torch.randn(2, 9, 32)))
    assert operators == {"Norm": 2, "Product": 1, "Product+": 3, "Attention": 1}


def test_a_tied_embedding_is_stored_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.out = nn.Embedding(1003, 40), nn.Linear(40, 1003, bias=False)
            self.out.weight = self.embedding.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.out(self.embedding(x).relu())

    x = torch.randint(0, 1003, (2, 5))
    assert whole(Tied(), x) == ["Gather", "Elementwise", "Product"]
    file = lowered(Tied(), x).to_executorch().buffer
    assert len(file) < 1.2 * 1003 * 40 * 4
    with pytest.raises(rl.RunError, match=r"index 1003 at position 9 is not within 0\.\.1002"):
        rl.load(bytes(file))(x.flatten().index_fill(0, torch.tensor(9), 1003).view(2, 5))


def test_nodes_are_traced_to_their_lines() -> None:
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(8, 20), nn.LayerNorm(20)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inner = F.relu(self.linear(x))
            return self.norm(inner)

    x = torch.randn(3, 8)
    module = rl.load(bytes(lowered(Network(), x).to_executorch().buffer), trace=True)
    module(x)
    inside = [event for event in module.trace.events() if event.inside]
    assert [event.inside for event in inside] == ["0", "1"]
    for event, code in zip(inside, ("F.relu(self.linear(x))", "self.norm(inner)"), strict=True):
        assert "test_cpu.py" in event.line and code in event.line


# --- models ---------------------------------------------------------------------------------------

MODELS = ["mobilenet_v2", "resnet50", "vit_b16", "minilm", "gpt2", "llama", "unet"]


@dataclass(frozen=True)
class Lowered:
    """A program, its inputs and eager's results."""

    file: bytes
    inputs: list[Any]
    eager: Any


@pytest.fixture(scope="module")
def lowered_model(models: ModuleType) -> Callable[[str], Lowered]:
    """Models by name, each lowered once."""

    @cache
    def model(name: str) -> Lowered:
        case = models.build(name)
        edge = rl.to_edge_transform_and_lower(case.export(), partitioner=[CpuPartitioner()])
        file = bytes(edge.to_executorch().buffer)
        with torch.no_grad():
            return Lowered(file, case.leaves(), case.module(*case.args, **case.kwargs))

    return model


@pytest.mark.parametrize("name", [f"{m}_tiny" for m in MODELS])
def test_models(lowered_model: Callable[[str], Lowered], name: str) -> None:
    model = lowered_model(name)
    one, two = (rl.load(model.file, threads=n) for n in (1, 2))
    first = one(*model.inputs)
    equal(first, model.eager, 2e-4)
    for a, b in zip(flat(first), flat(two(*model.inputs)), strict=True):
        assert torch.equal(a, b)


RUN = """
import sys, numpy as np, rushlight as rl
for name in sys.argv[1:]:
    inputs = np.load(f"{name}.npz")
    np.save(f"{name}.npy", rl.load(f"{name}.pte")(*(inputs[k] for k in inputs)))
"""


@pytest.mark.parametrize("isa", ["plain", "avx2", "avx512"])
def test_each_instruction_set_gives_the_same(
    lowered_model: Callable[[str], Lowered], isa: str, tmp_path: Path
) -> None:
    names = ("mobilenet_v2_tiny", "vit_b16_tiny")
    for name in names:
        model = lowered_model(name)
        (tmp_path / f"{name}.pte").write_bytes(model.file)
        np.savez(tmp_path / f"{name}.npz", *(x.numpy() for x in model.inputs))
    env = {**os.environ, "RUSHLIGHT_CPU": isa}
    subprocess.run([sys.executable, "-c", RUN, *names], check=True, env=env, cwd=tmp_path)
    for name in names:
        got = torch.from_numpy(np.load(tmp_path / f"{name}.npy"))
        equal(got, lowered_model(name).eager, 2e-4)


def test_by_name() -> None:
    program = rl.export(nn.Linear(4, 3), (torch.randn(2, 4),), backend="cpu")
    assert "cpu" in str(program.report()).lower()
    assert program.memory["forward"]["scratch"] == 0
    assert rl.load(program.buffer)(torch.ones(2, 4)).shape == (2, 3)


def test_memory_between_nodes_is_reported() -> None:
    model = nn.Sequential(nn.Linear(4, 16), nn.LayerNorm(16), nn.Linear(16, 3))
    program = rl.export(model, (torch.randn(10, 4),), backend="cpu")
    [delegate] = program.report().methods[0].delegates
    # Both results of [10, 16] live while the norm runs.
    assert delegate.scratch == 2 * 10 * 16 * 4
    memory = program.memory["forward"]
    assert memory["scratch"] == delegate.scratch
    assert memory["peak"] == sum(n for name, n in memory.items() if name != "peak")


# --- what it says no to ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [
        (lambda a: a.double() * 2, (X,), "float64; tiles hold float32"),
        (lambda a: a + 1, (torch.ones(3, dtype=torch.int64),), "int64; tiles hold float32"),
        (lambda a: a.cumsum(0), (X,), "the engine has no aten.cumsum.default"),
        (lambda a, w: F.linear(a, w), (X, torch.randn(4, 7)), "its weight is computed"),
        (lambda a: F.max_pool2d(a, 2, ceil_mode=True), (IMAGE,), "its ceil_mode is True"),
    ],
)
def test_reasons(function: Callable[..., Any], inputs: tuple[Any, ...], reason: str) -> None:
    edge = lowered(Call(function), *inputs)
    left = get_non_lowered_nodes(edge.exported_program().graph)
    reasons = [r for node in left for r in node.meta.get("declined", {}).values()]
    assert any(reason in text for text in reasons), reasons
