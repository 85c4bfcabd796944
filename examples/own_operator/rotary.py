"""A rotary embedding as one operator, and a small language model that uses it.

The model reads bytes and is trained to write like ``examples/data/almanac.txt``. Attention turns
its queries and keys by their positions with `rotary`, whose kernel is ``rotary.cpp``; given
`reference` in its place, the same model computes it by PyTorch's own operators.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import rushlight as rl

TEXT = Path(__file__).resolve().parents[1] / "data" / "almanac.txt"
WIDTH, HEADS, LAYERS, LENGTH = 128, 2, 2, 256
HALF = WIDTH // HEADS // 2


def reference(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pairs of elements.

    Args:
        x: [..., length, 2 n]: two halves of n elements.
        cos, sin: [length, n], of the angles.
    """
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


rotary = rl.custom_op("example::rotary(Tensor x, Tensor cos, Tensor sin) -> Tensor")(reference)


class Block(nn.Module):
    """Attention, then two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor, turn: Callable[[Tensor], Tensor]) -> Tensor:
        heads = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        query, key, value = (part.transpose(1, 2) for part in heads.unbind(2))
        attended = functional.scaled_dot_product_attention(
            turn(query.contiguous()), turn(key.contiguous()), value, is_causal=True
        )
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        return x + self.down(functional.gelu(self.up(self.norm_mlp(x))))


class Model(nn.Module):
    """The next byte after each of `tokens`, int64 [1, length], as logits [1, length, 256].

    Args:
        turn: `rotary`, or `reference`.
    """

    def __init__(self, turn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.turn = turn
        self.embedding = nn.Embedding(256, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256)
        angles = torch.outer(torch.arange(LENGTH), 10000.0 ** (-torch.arange(HALF) / HALF))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, lambda part: self.turn(part, cos, sin))
        return self.head(self.norm(x))


def train(model: nn.Module, iterations: int) -> float:
    """Train a model on the text; returns the last loss."""
    text = torch.tensor(list(TEXT.read_bytes()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss = torch.tensor(0.0)
    for _ in range(iterations):
        starts = torch.randint(len(text) - 65, (8, 1))
        batch = text[starts + torch.arange(65)]
        logits = model(batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
