"""The figures of one compared layer, and their texts."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.quantization.taps import Tap

BINS = 33  # of a histogram; odd, so that the middle one is around zero


@dataclass(frozen=True)
class Layer:
    """A compared value.

    Attributes:
        tap: the value's name, operators and place in the model.
        sqnr: signal to quantization noise, in dB: 10 log10(sum of float² / sum of error²); inf
            without any error, nan if a value is not finite.
        blame: the share of the whole noise that arises here: the noise to signal ratio of this
            value, less the greatest of the values that it is computed from.
        max_error: the greatest difference.
        max_value: the greatest magnitude in float.
        saturation: the share of values beyond the range of its integers; None for a float value.
        histogram: the number of differences in each bin between -reach and reach; the first and
            last bins also count all differences beyond.
        reach: the end of the histogram.
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
    """A share as text: "0.12 %", or "-" for None."""
    return "-" if share is None else f"{share * 100:.2f} %"
