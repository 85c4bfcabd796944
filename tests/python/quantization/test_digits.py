"""A convolutional network trained on scikit-learn's digits keeps its accuracy in integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

import rushlight
from rushlight.quantization import convert, freeze_batch_norms, freeze_scales, prepare_qat

BATCH = 64
Pair = tuple[torch.Tensor, torch.Tensor]


class Digits(nn.Module):
    """Two blocks with a residual, as small networks for images are."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU6())
        self.depthwise = nn.Sequential(
            nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), nn.BatchNorm2d(16), nn.ReLU6()
        )
        self.pointwise = nn.Sequential(nn.Conv2d(16, 16, 1, bias=False), nn.BatchNorm2d(16))
        self.second = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = x + self.pointwise(self.depthwise(x))
        return self.head(self.second(x).mean((2, 3)))


class Trained(NamedTuple):
    model: nn.Module
    train: Pair
    test: Pair


def batches(data: Pair) -> list[Pair]:
    """Whole batches, in an order that the generator draws."""
    order = torch.randperm(len(data[0]))
    whole = order[: len(order) // BATCH * BATCH].reshape(-1, BATCH)
    return [(data[0][rows], data[1][rows]) for rows in whole]


def train(model: nn.Module, data: Pair, epochs: int, rate: float) -> None:
    optimiser = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for x, y in batches(data):
            loss = F.cross_entropy(model(x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def accuracy(call: Callable[[torch.Tensor], torch.Tensor], data: Pair) -> float:
    """Per cent."""
    x, y = data
    batches = []
    for part in x.split(BATCH):
        filled = F.pad(part, (0, 0, 0, 0, 0, 0, 0, BATCH - len(part)))
        batches.append(call(filled)[: len(part)])
    return 100.0 * float((torch.cat(batches).argmax(1) == y).float().mean())


@pytest.fixture(scope="module")
def trained() -> Trained:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    x = torch.tensor(images[order] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    y = torch.tensor(labels[order])
    data, held = (x[:1197], y[:1197]), (x[1197:], y[1197:])
    torch.manual_seed(0)
    model = Digits()
    train(model, data, epochs=25, rate=4e-3)
    return Trained(model.eval(), data, held)


@pytest.fixture(scope="module")
def exact(trained: Trained) -> float:
    with torch.no_grad():
        reached = accuracy(trained.model, trained.test)
    assert reached > 97, "the float network has not learnt"
    return reached


def calibration(trained: Trained) -> list[tuple[torch.Tensor]]:
    torch.manual_seed(1)
    return [(x,) for x, _ in batches(trained.train)[:8]]


def loaded(program: torch.export.ExportedProgram) -> rushlight.Module:
    return rushlight.load(rushlight.export(program, backend="cpu").buffer)


@pytest.mark.parametrize("recipe", ["int8", "int8-per-tensor", "int16x8"])
def test_accuracy_after_calibration(recipe: str, trained: Trained, exact: float) -> None:
    program = rushlight.quantize(trained.model, calibrate=calibration(trained), recipe=recipe)
    assert accuracy(loaded(program), trained.test) >= exact - 0.5


@pytest.mark.full
def test_training_with_integers_is_at_least_as_accurate(trained: Trained, exact: float) -> None:
    calibrated = rushlight.quantize(trained.model, calibrate=calibration(trained))
    prepared = prepare_qat(trained.model, (trained.train[0][:BATCH],))
    torch.manual_seed(2)
    train(prepared, trained.train, epochs=2, rate=5e-4)
    freeze_batch_norms(prepared)
    freeze_scales(prepared)
    train(prepared, trained.train, epochs=1, rate=2e-4)
    reached = accuracy(loaded(convert(prepared)), trained.test)
    assert reached >= accuracy(loaded(calibrated), trained.test)
    assert reached >= exact - 0.5
