"""Numbers of a comparison in words."""

from __future__ import annotations

import math

from rushlight.inspect.diff.rules import Unit
from rushlight.inspect.text import size_text, time_text

ABSENT = "–"


def amount_text(value: float | None, unit: Unit) -> str:
    """A number with its unit."""
    if value is None or math.isnan(value):
        return ABSENT
    if unit == "bytes":
        return size_text(round(value))
    if unit == "time":
        return time_text(value * 1e6)
    if unit == "share":
        return f"{value:.1%}"
    if unit == "decibels":
        return "equal" if value == math.inf else f"{value:.1f} dB"
    return f"{value:,.0f}" if unit == "count" else f"{value:.3g}"


def ratio_text(ratio: float) -> str:
    """A ratio: "1.05x"."""
    if not math.isfinite(ratio):
        return ABSENT if math.isnan(ratio) else "∞" if ratio > 0 else "-∞"
    if ratio >= 10:
        return f"{ratio:.3g}x"
    return f"{ratio:.2f}x" if abs(ratio - 1) >= 0.005 or ratio == 1 else f"{ratio:.4f}x"


def change_text(before: float | None, after: float | None) -> str:
    """How much a number changed: "0.26x", "new", "gone", "same"."""
    if before is None or after is None:
        return "new" if before is None else "gone"
    if before == after:
        return "same"
    return ratio_text(after / before) if before else "new"
