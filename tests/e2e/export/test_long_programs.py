"""Programs of many calls: as good as short ones, whatever the backend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.check import method
from rushlight.partition.partitioner import Partitioner

BACKENDS: dict[str, list[Partitioner]] = {
    "portable": [],
    "cpu": [CpuPartitioner()],
    "xnnpack": [XnnpackPartitioner()],
}


class Chain(nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.a = nn.Parameter(1 + torch.rand(8) / 100)
        self.b = nn.Parameter(torch.randn(8) / 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.count // 2):
            x = x * self.a + self.b
        return x


class Deep(nn.Module):
    """Chains of each kind that the compiler follows: sums, views, casts, integers."""

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
        joined, viewed = torch.cat([x, -x]), x
        for _ in range(300):
            joined = torch.relu(joined) + x.sum()
            viewed = viewed.unsqueeze(0).transpose(0, 1).squeeze(1)
            at = at.unsqueeze(0).transpose(0, 1).squeeze(1)
        return joined, viewed + 1, torch.gather(x, 1, at)


@contextmanager
def little_stack(more: int) -> Iterator[None]:
    """While active, Python's stack may grow by so many calls."""
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + more)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_chain_of_600_calls(backend: str) -> None:
    model, x = Chain(600).eval(), torch.randn(3, 8)
    module = rl.load(rl.export(model, (x,), backend=backend).buffer)
    torch.testing.assert_close(module(x), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "backend", [*(pytest.param(b, marks=pytest.mark.full) for b in ("portable", "xnnpack")), "cpu"]
)
def test_no_walk_is_as_deep_as_the_program_is_long(backend: str) -> None:
    args = (torch.randn(3, 8), torch.zeros(3, 2, dtype=torch.int64))
    edge = rl.to_edge(torch.export.export(Deep(), args))
    with little_stack(220):
        for partitioner in BACKENDS[backend]:
            edge = edge.to_backend(partitioner)
        file = bytes(edge.to_executorch().buffer)
    for got, wanted in zip(rl.load(file)(*args), Deep()(*args), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_each_method_is_loaded_alone_to_be_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading all of them for each would take the square of their number."""
    loaded: list[list[str]] = []
    load = method.load_to_compare

    def counted(*args: Any) -> rl.Module:
        module = load(*args)
        loaded.append(list(module.methods))
        return module

    monkeypatch.setattr(method, "load_to_compare", counted)
    x = torch.randn(3, 8)
    captured = {f"scale{i}": torch.export.export(Chain(2 * i), (x,)) for i in range(1, 5)}
    for backend in ("portable", ["cpu", "portable"]):
        loaded.clear()
        program = rl.export(captured, backend=backend)
        forms = 1 if isinstance(backend, str) else len(backend)
        assert sorted(loaded) == sorted([name] for name in captured for _ in range(forms))
        module = rl.load(program.buffer)
        for name, one in captured.items():
            torch.testing.assert_close(module[name](x), one.module()(x))
