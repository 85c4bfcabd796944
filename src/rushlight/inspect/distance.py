"""How far one array is from another, of the same shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Figures:
    """How far a value is from another.

    Attributes:
        max_error: the greatest difference; inf if only one of two elements is finite.
        max_value: the greatest finite magnitude of the other.
        sqnr: 10 log10(sum of squares / sum of squared differences) in dB; inf without differences.
        cosine: of the angle between them as vectors; nan if one is zero.
    """

    max_error: float
    max_value: float
    sqnr: float
    cosine: float


def errors_of(value: Array, wanted: Array) -> Array:
    """The difference of each element, flattened: 0 for equal ones and for two NaNs, inf if only one
    of two elements is finite."""
    one, other = (_wide(array) for array in (value, wanted))
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(one) & np.isfinite(other)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        errors: Array = np.where(same, 0.0, np.where(finite, np.abs(one - other), np.inf))
    return errors


def figures(value: Array, wanted: Array) -> Figures:
    """How far a value is from the one that is wanted, of the same shape."""
    errors = errors_of(value, wanted)
    one, other = (_wide(array) for array in (value, wanted))
    finite = np.isfinite(one) & np.isfinite(other)
    a, b = one[finite], other[finite]
    signal, noise = float(np.vdot(b, b).real), float(errors @ errors)
    norm = math.sqrt(float(np.vdot(a, a).real) * signal)
    return Figures(
        float(errors.max(initial=0.0)),
        float(np.abs(b).max(initial=0.0)),
        math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf,
        float(np.vdot(a, b).real) / norm if norm else math.nan,
    )


def _wide(array: Array) -> Array:
    """The elements flattened, in float64 or complex128."""
    kind = np.complex128 if np.iscomplexobj(array) else np.float64
    wide: Array = array.astype(kind).reshape(-1)
    return wide
