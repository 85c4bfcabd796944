"""A character GPT, trained here on Python's own help texts, keeps its perplexity in integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pydoc_data.topics import topics
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import rushlight

LENGTH, BATCH = 64, 16


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


class CharacterGpt(nn.Module):
    def __init__(self, characters: int, width: int, layers: int) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(characters, width), nn.Embedding(LENGTH, width)
        self.layers = nn.Sequential(*(Layer(width, width // 32) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x) + self.place.weight
        return self.head(self.norm(self.layers(x)))


class Trained(NamedTuple):
    model: nn.Module
    held: torch.Tensor  # [batches, BATCH, LENGTH + 1]
    seen: torch.Tensor


def trained(width: int, layers: int, batches: int) -> Trained:
    text = "".join(topics[name] for name in sorted(topics))[:300_000]
    characters = sorted(set(text))
    index = {c: i for i, c in enumerate(characters)}
    codes = torch.tensor([index[c] for c in text])
    codes = codes[: len(codes) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1)
    torch.manual_seed(0)
    codes = codes[torch.randperm(len(codes))]
    held, seen = codes[: 8 * BATCH].reshape(-1, BATCH, LENGTH + 1), codes[8 * BATCH :]
    model = CharacterGpt(len(characters), width, layers)
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=batches)
    for _ in range(batches):
        rows = seen[torch.randint(len(seen), (BATCH,))]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return Trained(model.eval(), held, seen[: 8 * BATCH].reshape(-1, BATCH, LENGTH + 1))


def perplexity(call: Callable[[torch.Tensor], torch.Tensor], held: torch.Tensor) -> float:
    with torch.no_grad():
        losses = [F.cross_entropy(call(b[:, :-1]).flatten(0, 1), b[:, 1:].flatten()) for b in held]
    return math.exp(float(torch.stack(losses).mean()))


SIZES = [
    pytest.param((64, 2, 300), id="short"),
    pytest.param((192, 4, 2000), id="long", marks=pytest.mark.full),
]


@pytest.fixture(scope="module", params=SIZES)
def gpt(request: pytest.FixtureRequest) -> Trained:
    return trained(*request.param)


@pytest.mark.parametrize(
    ("recipe", "most"),
    [("int8-dynamic", 1.02), ("int4-dynamic", 1.05), ("int4-weights", 1.05), ("bfloat16", 1.02)],
)
def test_perplexity(recipe: str, most: float, gpt: Trained) -> None:
    exact = perplexity(gpt.model, gpt.held)
    assert exact < 16, "the float model has not learnt"
    data = [(b[:, :-1],) for b in gpt.seen] if recipe == "int4-dynamic" else None
    example = (gpt.held[0][:, :-1],)
    program = rushlight.export(
        gpt.model, example, backend="cpu", quantize=recipe, calibrate=data, verify=False
    )
    module = rushlight.load(program.buffer)
    actual = perplexity(lambda x: module(x).float(), gpt.held)
    assert actual <= most * exact
    assert actual != exact, "nothing was quantised"
