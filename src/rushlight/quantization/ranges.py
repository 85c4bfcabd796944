"""The range of a value's integers: the one with the least squared error over all observed values.

Observation fills a histogram whose bins are powers of two wide and begin at multiples of their
width: when values exceed it, pairs of bins are merged, and no count is estimated. The search tries
a grid of ends at once. A value within the range costs the square of the scale over twelve, as if
values were spread evenly; one that becomes zero costs its square, and one beyond the range the
square of its distance. For the best ranges the rounding of each bin is then computed.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torchao.quantization.pt2e.observer import UniformQuantizationObserverBase

_BINS = 4096
_CHUNK = 1 << 16  # values that are counted at a time, so that they stay in a cache
_NARROWEST = -100  # the least exponent of a width, so that its inverse is a float32
_TRIES_TO_HALF = 12
_CHOSEN = 24  # the number of best ranges whose rounding is computed
_TRIED = torch.exp2(-torch.arange(8 * _TRIES_TO_HALF, dtype=torch.float64) / _TRIES_TO_HALF)


class RangeObserver(UniformQuantizationObserverBase):  # type: ignore[misc]  # torchao has no types
    """The observer of an activation with one scale, whose range is found after all data."""

    def __init__(self, dtype: torch.dtype = torch.int8, **options: Any) -> None:
        super().__init__(dtype=dtype, **options)
        self._seen = Histogram()
        self._best: tuple[int, tuple[float, float]] | None = None  # (number of values, range)

    @property
    def min_val(self) -> torch.Tensor:
        """The least observed value; NaN if a value was not finite."""
        return torch.tensor(self._seen.low)

    @property
    def max_val(self) -> torch.Tensor:
        """The greatest observed value; NaN if a value was not finite."""
        return torch.tensor(self._seen.high)

    @property
    def has_seen_infinity(self) -> bool:
        """Whether a value was NaN or infinite."""
        return math.isnan(self._seen.low)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns `x`, and counts its values."""
        if x.numel():
            self._seen.add(x.detach().reshape(-1).float())
        return x

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The scale and zero point; the range is searched once."""
        seen = self._seen
        ends = seen.low, seen.high
        if seen.is_finite:
            if self._best is None or self._best[0] != seen.total:
                is_symmetric = self.qscheme == torch.per_tensor_symmetric
                best = best_range(seen, self.quant_max - self.quant_min, is_symmetric)
                self._best = seen.total, best
            ends = self._best[1]
        scale, zero_point = self._calculate_qparams(*map(torch.tensor, ends))
        return scale, zero_point


class Histogram:
    """The number of values in each bin.

    Attributes:
        low, high: the least and the greatest value; NaN if a value was not finite.
        total: the number of values.
        counts: the number of values in each bin.
    """

    def __init__(self) -> None:
        self.low, self.high = math.inf, -math.inf
        self.total = 0
        self.counts = torch.zeros(_BINS, dtype=torch.int64)
        self._exponent = 0  # of the width of a bin, a power of two
        self._first = 0  # where the first bin begins, in widths

    @property
    def is_finite(self) -> bool:
        """Whether there are values, and none is NaN or infinite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def bins_below(self, ends: torch.Tensor) -> torch.Tensor:
        """The number of bins whose middle is below each of these numbers."""
        places = torch.ldexp(ends, torch.tensor(-self._exponent)) - (self._first + 0.5)
        return places.ceil_().clamp_(0, _BINS).long()

    @property
    def centres(self) -> torch.Tensor:
        """The middle of each bin, as float64."""
        bins = torch.arange(_BINS, dtype=torch.float64) + (self._first + 0.5)
        return bins * math.ldexp(1.0, self._exponent)

    def add(self, values: torch.Tensor) -> None:
        """Count the values of a float32 vector; if one is not finite, only record that."""
        low, high = (float(end) for end in torch.aminmax(values))
        if not (math.isfinite(low) and math.isfinite(high)) or (self.total and not self.is_finite):
            self.low = self.high = math.nan
            return
        self._widen(min(low, self.low), max(high, self.high))
        inverse, first = math.ldexp(1.0, -self._exponent), torch.tensor(float(self._first))
        counts = torch.zeros(_BINS + 1, dtype=torch.int64)
        for part in values.split(_CHUNK):
            bins = torch.sub(part * inverse, first).to(torch.int32)
            counts += torch.bincount(bins, minlength=_BINS + 1)
        self.counts += counts[:-1]
        self.counts[-1] += counts[-1]  # values that float32 rounded up to the end
        self.total += values.numel()

    def _widen(self, low: float, high: float) -> None:
        """Extend the bins to reach from `low` to `high`."""
        if (low, high) == (self.low, self.high):
            return
        exponent = _exponent(low, high)
        exponent = max(exponent, self._exponent) if self.total else exponent
        first = math.floor(math.ldexp(low, -exponent))
        if self.total and (exponent, first) != (self._exponent, self._first):
            used = self.counts.nonzero().flatten()
            moved = ((used + self._first) >> (exponent - self._exponent)) - first
            self.counts = torch.zeros_like(self.counts).index_add_(0, moved, self.counts[used])
        self.low, self.high = low, high
        self._exponent, self._first = exponent, first


def best_range(seen: Histogram, intervals: int, is_symmetric: bool) -> tuple[float, float]:
    """The range whose division into `intervals` has the least squared error."""
    low, high = min(seen.low, 0.0), max(seen.high, 0.0)
    if is_symmetric:
        highs = max(-low, high) * _TRIED
        lows = -highs
    else:
        lows, highs = (low * _TRIED).unsqueeze(1), high * _TRIED
    counts, centres = seen.counts.double(), seen.centres.clamp(low, high)
    moments = torch.stack([counts, counts * centres, counts * centres.square()])
    sums = torch.nn.functional.pad(moments.cumsum(1), (1, 0))
    below = sums[:, seen.bins_below(lows)]
    above = sums[:, -1:] - sums[:, seen.bins_below(highs)]
    scale = (highs - lows) / intervals
    above_zero, below_zero = seen.bins_below(scale / 2), seen.bins_below(-scale / 2)
    in_zero, of_zero = (moment[above_zero] - moment[below_zero] for moment in sums[::2])
    spread = seen.total - below[0] - above[0] - in_zero
    error = spread * scale.square() / 12 + of_zero
    error += _distance(below, lows) + _distance(above, highs)
    lows, highs = (end.broadcast_to(error.shape).flatten() for end in (lows, highs))
    chosen = error.flatten().topk(min(_CHOSEN, error.numel()), largest=False).indices
    lows, highs = (torch.cat([end[:1], end[chosen]]) for end in (lows, highs))  # all, and the best
    at = int(_rounding(counts, centres, lows, highs, intervals).argmin())
    return float(lows[at]), float(highs[at])


def _rounding(
    counts: torch.Tensor,
    centres: torch.Tensor,
    lows: torch.Tensor,
    highs: torch.Tensor,
    intervals: int,
) -> torch.Tensor:
    """The squared error of each range, with the rounding of each bin."""
    scale = ((highs - lows) / intervals).clamp_min(torch.finfo(torch.float64).tiny).unsqueeze(1)
    first = torch.round(lows.unsqueeze(1) / scale)
    used = counts > 0
    rounded = torch.round(centres[used] / scale)
    lost = torch.minimum(rounded.maximum(first), first + intervals).mul_(scale).sub_(centres[used])
    return lost.square_() @ counts[used]


def _distance(sums: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """The sum of squared distances of values from `end`, by their moments 0, 1 and 2."""
    return sums[2] - 2 * end * sums[1] + end.square() * sums[0]


def _exponent(low: float, high: float) -> int:
    """The least exponent of a width with which the bins reach from `low` to `high`."""
    # If all values are about equal, the width is the precision of float32 around them.
    span = max(high - low, max(-low, high) * 2.0**-12)
    exponent = max(math.frexp(span / (_BINS - 1))[1], _NARROWEST) if span else 0
    while math.floor(math.ldexp(high, -exponent)) - math.floor(math.ldexp(low, -exponent)) >= _BINS:
        exponent += 1
    return exponent
