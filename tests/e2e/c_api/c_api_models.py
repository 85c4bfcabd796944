"""Small models that several tests of the C interface and of its bindings export."""

from __future__ import annotations

import torch


class Net(torch.nn.Module):
    """Dynamic sizes, two inputs of one size, outputs of several dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)
        self.norm = torch.nn.LayerNorm(5)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.norm(torch.relu(self.linear(x))) * mask[:, None]
        return y, y.argmax(-1), y > 0, y.half()


class Counter(torch.nn.Module):
    """State."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x)
        return self.count * 1.0


class Noise(torch.nn.Module):
    """Random numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(4)


class Loop(torch.nn.Module):
    """Runs for a long time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def more(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return i < 100_000_000

        def body(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, y + 1.0

        return torch.while_loop(more, body, (torch.zeros((), dtype=torch.int64), x))[1]
