"""The chosen range of a value's integers: its error beside torchao's search, and its calls."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torchao.quantization.pt2e import (
    HistogramObserver,
    MinMaxObserver,
    PerChannelMinMaxObserver,
)

import rushlight as rl
from rushlight.quantization import ranges
from rushlight.quantization.ranges import Histogram, RangeObserver

OPTIONS = {
    "dtype": torch.int8,
    "quant_min": -128,
    "quant_max": 127,
    "qscheme": torch.per_tensor_affine,
    "eps": 2.0**-100,
}
VALUES: dict[str, Callable[[], Tensor]] = {
    "normal": lambda: torch.randn(20000),
    "relu": lambda: torch.randn(20000).relu(),
    "relu6": lambda: (torch.randn(20000) * 4).clamp(0, 6),
    "heavy": lambda: torch.randn(20000) ** 5,
    "laplace": lambda: torch.randn(20000) * torch.randn(20000),
    "one-outlier": lambda: torch.cat([torch.randn(20000), torch.tensor([300.0])]),
    "far-from-zero": lambda: torch.randn(1000) * 1e-3 + 5,
    "small": lambda: torch.randn(20000) * 1e-9,
    "few": lambda: torch.randn(4),
}


def error(observer: nn.Module, x: Tensor) -> float:
    scale, zero = observer.calculate_qparams()
    size = float(scale)
    back = torch.round(x.double() / size + int(zero)).clamp(-128, 127)
    return float(((back - int(zero)) * size - x.double()).square().mean())


@pytest.mark.parametrize("name", VALUES)
def test_error_is_at_most_that_of_torchaos_search(name: str) -> None:
    torch.manual_seed(0)
    parts = [VALUES[name]() for _ in range(3)]
    ours, searched, widest = (
        observer(**OPTIONS) for observer in (RangeObserver, HistogramObserver, MinMaxObserver)
    )
    for observer in (ours, searched, widest):
        for part in parts:
            observer(part)
    x = torch.cat(parts)
    # Bins have a width, and zero points are whole: a hundredth is left to chance.
    assert error(ours, x) <= 1.01 * error(widest, x)
    assert error(ours, x) <= 1.02 * error(searched, x)


def test_symmetric_ranges_are_symmetric() -> None:
    torch.manual_seed(0)
    observer = RangeObserver(**{**OPTIONS, "qscheme": torch.per_tensor_symmetric})
    observer(torch.randn(1000) ** 3 + 1)
    scale, zero = observer.calculate_qparams()
    assert int(zero) == 0 and 0 < float(scale) < 1


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_values_stay_counted_as_the_bins_widen(scale: float) -> None:
    """The oracle is a histogram that knows the ends of the range from the start."""
    torch.manual_seed(0)
    parts = [torch.randn(500).double() * scale * grow for grow in (1e-3, 1, 0.1, 37)]
    parts = [part.float() for part in parts]
    grown, known = Histogram(), Histogram()
    for part in parts:
        grown.add(part)
    known.add(torch.cat(parts))
    assert torch.equal(grown.counts, known.counts) and torch.equal(grown.centres, known.centres)
    assert (grown.low, grown.high, grown.total) == (known.low, known.high, known.total)


@pytest.mark.parametrize("value", [0.0, 1000.0, -3e38, 1e-38])
def test_one_value_alone(value: float) -> None:
    seen = Histogram()
    seen.add(torch.full((3,), value))
    seen.add(torch.full((2,), value))
    assert int(seen.counts.sum()) == 5 and int(seen.counts.max()) == 5
    low, high = ranges.best_range(seen, 255, is_symmetric=False)
    assert low <= 0 <= high and math.isclose(high - low, abs(seen.low), rel_tol=1e-6)


class Small(nn.Module):
    """Two convolutions whose values are small; the first one's are joined with larger ones."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self.size = size
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 1)
        self.wide = nn.Conv2d(8, 8, 1)
        with torch.no_grad():
            for parameter in [*self.first.parameters(), self.second.bias]:
                parameter *= size
            self.wide.weight *= 1 / size

    def forward(self, x: Tensor) -> Tensor:
        small = self.first(x)
        wide = self.wide(self.second(small))
        return torch.cat([wide, small], 1)


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
@pytest.mark.parametrize("size", [1e-4, 1e-9, 1e-14])
def test_small_values_keep_their_signal(size: float, backend: str) -> None:
    """The signal is kept even where they are joined with larger values, whose scale would make them
    zero."""
    torch.manual_seed(0)
    model, data = Small(size).eval(), [(torch.randn(1, 3, 8, 8),) for _ in range(4)]
    program = rl.export(model, data[0], backend=backend, quantize="int8", calibrate=data)
    actual = torch.as_tensor(rl.load(program.buffer)(data[0][0]))[:, :8]
    exact = model(*data[0])[:, :8]
    assert (actual - exact).square().sum() < 1e-3 * exact.square().sum()


def test_each_range_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Histogram] = []
    search = ranges.best_range

    def counted(seen: Histogram, intervals: int, is_symmetric: bool) -> tuple[float, float]:
        searched.append(seen)
        return search(seen, intervals, is_symmetric)

    monkeypatch.setattr(ranges, "best_range", counted)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3)).eval()
    rl.quantize(model, calibrate=[(torch.randn(1, 3, 8, 8),)] * 3)
    assert len(searched) == len({id(seen) for seen in searched}) == 3


def test_weights_are_observed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {PerChannelMinMaxObserver: 0, RangeObserver: 0}

    def count(kind: type[nn.Module]) -> None:
        forward = kind.forward

        def counted(self: nn.Module, x: Tensor) -> Tensor:
            seen[kind] += 1
            return forward(self, x)

        monkeypatch.setattr(kind, "forward", counted)

    for kind in seen:
        count(kind)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)).eval()
    data = [(torch.randn(1, 3, 6, 6),) for _ in range(5)]
    quantised = rl.quantize(model, calibrate=data)
    assert seen[PerChannelMinMaxObserver] == 2  # one for each weight
    assert seen[RangeObserver] >= 5 * 3  # input and results, of every item
    x = data[3][0]
    assert torch.allclose(quantised.module()(x), model(x), atol=0.05)


class _Joined(nn.Module):
    """A parameter that is quantised with the range of the values that it is joined with."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 1)
        self.row = nn.Parameter(torch.full((1, 2, 4), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.row, self.conv(x)], dim=1)


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_what_is_joined_with_a_parameter_is_observed_throughout(recipe: str) -> None:
    torch.manual_seed(0)
    model = _Joined().eval()
    data = [(torch.randn(1, 2, 4) * 4.0**i,) for i in range(4)]
    x = data[-1][0]
    actual = rl.quantize(model, calibrate=data, recipe=recipe).module()(x)
    assert (actual - model(x)).abs().max() < 0.02 * model(x).abs().max()
