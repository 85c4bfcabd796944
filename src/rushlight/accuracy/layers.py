"""What quantization costs one layer, and its figures in words."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.quantization.taps import Tap

BINS = 33  # of a histogram, an odd number: the middle one is around zero


@dataclass(frozen=True)
class Layer:
    """A compared value.

    Attributes:
        tap: which one.
        sqnr: signal to quantization noise, in dB: 10 log10(sum of float² / sum of error²); inf
            without any error, nan if a value is not finite.
        blame: the share of the whole noise that arises here: what this value's noise to signal
            ratio is above the greatest of those that it is computed from.
        max_error: the greatest difference.
        max_value: the greatest magnitude in float.
        saturation: the share of values beyond what its integers can say; None of a float value.
        histogram: how many differences lie in each of the bins between -reach and reach, the first
            and the last with all beyond.
        reach: see there.
    """

    tap: Tap
    sqnr: float
    blame: float
    max_error: float
    max_value: float
    saturation: float | None
    histogram: tuple[int, ...]
    reach: float


def percent(share: float | None) -> str:
    """ "0.12 %", or "-"."""
    return "-" if share is None else f"{share * 100:.2f} %"


def line_of(layer: Layer) -> str:
    """ "model.py:12", or ""."""
    source = layer.tap.source
    return f"{source.file.rpartition('/')[2]}:{source.line}" if source.file else ""
