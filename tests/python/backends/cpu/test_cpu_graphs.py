"""The cpu backend over generated graphs: calls in any order, shared and reshaped, equal eager."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from cpu_models import follows, whole
from torch import nn

N = 6
Value = torch.Tensor

# Functions of a square matrix; their results are bounded, so that long chains stay comparable.
ONE: list[Callable[[Value], Value]] = [
    torch.tanh,
    torch.relu,
    F.gelu,
    lambda x: x * 0.5 + 1,
    lambda x: x.clamp(-1, 0.5),
    lambda x: x.softmax(-1),
    lambda x: x.t(),
    lambda x: x.t().contiguous(),
    lambda x: x.reshape(4, 9).reshape(N, N),
    lambda x: x[None].expand(2, N, N)[1],
    lambda x: torch.cat([x[2:], x[:2]]),
    lambda x: x.view(1, N, N).permute(1, 0, 2).reshape(N, N),
    lambda x: F.layer_norm(x, (N,)),
    lambda x: x - x.mean(1, keepdim=True),
    lambda x: x / (x.abs().amax(0) + 1),
    lambda x: torch.where(x > 0, x, x.exp() - 1),
    lambda x: F.pad(x, (1, 0, 0, 2))[2:, 1:],
]
TWO: list[Callable[[Value, Value], Value]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: torch.tanh(x) * y,
    torch.maximum,
    lambda x, y: torch.tanh(x @ y),
    lambda x, y: x + y[:1],
    lambda x, y: x * torch.sigmoid(y[:, 2:3]),
    lambda x, y: torch.where(x > y, x, y.t()),
]


# Functions of a tensor [n, N] with dynamic n.
ONE_SIZED: list[Callable[[Value], Value]] = [
    *ONE[:6],
    lambda x: x.softmax(0),
    lambda x: x.t().contiguous().t(),
    lambda x: x.reshape(-1).reshape(-1, N),
    lambda x: x[None].expand(2, -1, N)[1],
    lambda x: torch.cat([x[2:], x[:2]]),
    lambda x: torch.stack([x, x], 1).flatten(0, 1)[::2],
    lambda x: x.view(1, -1, N).permute(1, 0, 2).reshape(-1, N),
    lambda x: x.view(-1, 2, 3).transpose(1, 2).flatten(1),
    lambda x: F.layer_norm(x, (N,)),
    lambda x: x - x.mean(0, keepdim=True),
    lambda x: x / (x.abs().amax(0) + 1),
    lambda x: F.pad(x, (1, 0, 0, 2))[2:, 1:],
]
TWO_SIZED: list[Callable[[Value, Value], Value]] = [
    *TWO[:4],
    lambda x, y: torch.tanh(x @ y.t()) @ y.softmax(0),
    lambda x, y: torch.where(x > y, x, y.t().contiguous().t()),
    lambda x, y: x + y[:1],
    lambda x, y: x * torch.sigmoid(y[:, 2:3]),
]


class Generated(nn.Module):
    """A graph of 15 calls, drawn with this seed; later calls read any earlier result."""

    def __init__(self, seed: int, one: Sequence[Any] = ONE, two: Sequence[Any] = TWO) -> None:
        super().__init__()
        self.seed = seed
        self.one, self.two = one, two
        self.layers = nn.ModuleList([nn.Linear(N, N), nn.Linear(N, N, bias=False)])
        self.convolution = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, *inputs: Value) -> list[Value]:
        draw = random.Random(self.seed)
        values = list(inputs)
        for _ in range(15):
            kind = draw.random()
            x, y = draw.choice(values[-4:]), draw.choice(values)
            if kind < 0.2:
                new = draw.choice(list(self.layers))(x).tanh()
            elif kind < 0.25:
                new = self.convolution(torch.stack([x, y])[None])[0, 1].tanh()
            elif kind < 0.6:
                new = draw.choice(self.one)(x)
            else:
                new = draw.choice(self.two)(x, y)
            values.append(new)
        return [values[-1], draw.choice(values[2:]), draw.choice(values[2:]).t()]


@pytest.mark.parametrize("seed", range(40))
def test_graphs(seed: int) -> None:
    torch.manual_seed(seed)
    whole(Generated(seed), torch.randn(N, N), torch.randn(N, N), tolerance=1e-4)


@pytest.mark.parametrize("seed", range(25))
def test_graphs_of_dynamic_sizes(seed: int) -> None:
    torch.manual_seed(seed)
    calls = [(torch.randn(n, N), torch.randn(n, N)) for n in (6, 4, 17, 5)]
    size = {0: torch.export.Dim("n", min=4, max=17)}
    follows(Generated(seed, ONE_SIZED, TWO_SIZED), [(size, size)], *calls, tolerance=1e-4)
