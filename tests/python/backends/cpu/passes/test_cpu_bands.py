"""Convolutions in bands of rows: less scratch memory, and the same results to the last bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cpu_models import follows
from torch import nn
from torch.export import Dim

import rushlight as rl
from rushlight.backends.cpu import preprocess
from rushlight.backends.cpu.passes import bands


@pytest.fixture
def at_any_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut small images too, even where it does not pay."""
    for name, value in {"_SMALL_BYTES": 0, "_SMALL_SHARE": 0, "_MAX_WORK": 10}.items():
        monkeypatch.setattr(bands, name, value)


def exported(model: nn.Module, *args: Any) -> rl.Program:
    return rl.export(model.eval(), args, backend="cpu", verify=False)


def scratch(program: rl.Program) -> int:
    return program.memory["forward"]["scratch"]


def without_bands(model: nn.Module, *args: Any) -> rl.Program:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preprocess, "cut_into_bands", lambda graph: None)
        return exported(model, *args)


def becomes(model: nn.Module, *args: Any) -> float:
    """The share of the scratch memory that is left; holds results to those without bands."""
    whole, cut = without_bands(model, *args), exported(model, *args)
    for threads in (1, 2):
        wanted, actual = (rl.load(p.buffer, threads=threads)(*args) for p in (whole, cut))
        np.testing.assert_array_equal(actual, wanted)
    return scratch(cut) / scratch(whole)


class Inverted(nn.Module):
    """A stem, and blocks that widen an image, convolve each channel and narrow it."""

    def __init__(self, activation: Any = F.relu6) -> None:
        super().__init__()
        self.activation = activation
        self.stem = nn.Conv2d(3, 8, 3, 2, padding=1)
        self.widen = nn.ModuleList(nn.Conv2d(8, 48, 1) for _ in range(3))
        self.each = nn.ModuleList(
            nn.Conv2d(48, 48, k, s, padding=k // 2, groups=48) for k, s in ((3, 1), (5, 1), (3, 2))
        )
        self.narrow = nn.ModuleList(nn.Conv2d(48, 8, 1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for widen, each, narrow in zip(self.widen, self.each, self.narrow, strict=True):
            y = narrow(self.activation(each(self.activation(widen(x)))))
            x = x + y if x.shape == y.shape else y
        return x


@pytest.mark.usefixtures("at_any_cost")
@pytest.mark.parametrize(
    "activation",
    [F.relu6, F.silu, lambda x: x * torch.linspace(0.5, 2, 48)[:, None, None] + x.sigmoid()],
    ids=["clamp", "tile program", "constants of channels"],
)
def test_blocks_that_widen_an_image_take_half_the_memory(activation: Any) -> None:
    torch.manual_seed(0)
    assert becomes(Inverted(activation), torch.randn(1, 3, 96, 80)) < 0.5


@pytest.mark.usefixtures("at_any_cost")
def test_an_image_that_is_read_as_it_comes_is_cut() -> None:
    """Channels first, by the first convolution."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), nn.ReLU(), nn.Conv2d(32, 4, 5, 3))
    assert becomes(model, torch.randn(1, 3, 90, 101)) < 0.5


def convolution(draw: random.Random, channels: int) -> nn.Conv2d:
    kernel, outs = (draw.randint(1, 4), draw.randint(1, 4)), draw.choice([8, 24, 40])
    groups = draw.choice([1, 1, 2, channels])
    return nn.Conv2d(
        channels,
        outs if groups < channels else channels * draw.randint(1, 2),
        kernel,
        draw.choice([1, 1, 2, 3]),
        [draw.randint(0, k) for k in kernel],
        draw.choice([1, 1, 2]),
        groups,
    )


def convolutions(seed: int) -> nn.Module:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    channels = 8
    for _ in range(5):
        made = convolution(draw, channels)
        layers += [made, draw.choice([nn.ReLU(), nn.Hardswish(), nn.Identity()])]
        channels = made.out_channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1))


@pytest.mark.usefixtures("at_any_cost")
def test_convolutions_of_any_window_give_the_same_in_bands() -> None:
    left = [becomes(convolutions(seed), torch.randn(1, 8, 60 + seed, 47)) for seed in range(6)]
    assert sum(share < 0.9 for share in left) > 3


class Twice(nn.Module):
    """The image between two convolutions is also a result."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Conv2d(3, 64, 1), nn.Conv2d(64, 3, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.one(x)
        return y.sum(), self.other(y)


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (Inverted(), (2, 3, 128, 128)),
        (Inverted(), (1, 3, 32, 32)),
        (Twice(), (1, 3, 64, 64)),
        # All that it needs is small beside the weights.
        (nn.Sequential(Inverted(), nn.Flatten(), nn.Linear(8 * 32 * 32, 512)), (1, 3, 128, 128)),
    ],
    ids=["batch", "small", "read twice", "beside weights"],
)
def test_what_bands_do_not_suit_stays_whole(model: nn.Module, sizes: tuple[int, ...]) -> None:
    args = (torch.randn(sizes),)
    assert exported(model, *args).buffer == without_bands(model, *args).buffer


def test_images_of_any_size_are_not_cut() -> None:
    side = Dim("side", min=8, max=64)
    follows(
        Inverted(),
        ({2: 4 * side},),
        *((torch.randn(1, 3, 4 * n, 64),) for n in (64, 8, 33)),
    )
