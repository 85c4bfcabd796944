"""Figures of how far arrays are apart, against NumPy and by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rushlight.inspect.distance import errors_of, figures


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.complex64])
def test_figures(dtype: Any) -> None:
    chance = np.random.default_rng(0)
    wanted = (10 * chance.standard_normal((3, 5))).astype(dtype)
    value = (wanted + 3 * chance.standard_normal((3, 5))).astype(dtype)
    a, b = (x.astype(np.complex128).reshape(-1) for x in (value, wanted))
    far = figures(value, wanted)
    assert far.max_error == pytest.approx(np.abs(a - b).max())
    assert far.max_value == pytest.approx(np.abs(b).max())
    noise, signal = np.square(np.abs(a - b)).sum(), np.square(np.abs(b)).sum()
    assert far.sqnr == pytest.approx(10 * np.log10(signal / noise))
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    assert far.cosine == pytest.approx(np.vdot(a, b).real / norms)


@pytest.mark.parametrize(
    ("value", "wanted", "error", "sqnr"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0, math.inf),
        ([], [], 0, math.inf),
        ([math.nan, math.inf], [math.nan, math.inf], 0, math.inf),
        ([math.inf, 1.0], [1.0, 1.0], math.inf, -math.inf),
        ([1.0, 1.0], [1.0, math.nan], math.inf, -math.inf),
        ([math.inf], [-math.inf], math.inf, -math.inf),
        ([1.0], [0.0], 1, -math.inf),
        ([1e200], [-1e200], 2e200, -10 * math.log10(4)),
        ([1e-200], [2e-200], 1e-200, 10 * math.log10(4)),
    ],
)
def test_what_is_not_finite(value: Any, wanted: Any, error: float, sqnr: float) -> None:
    far = figures(np.array(value), np.array(wanted))
    assert (far.max_error, far.sqnr) == (pytest.approx(error), pytest.approx(sqnr))


def test_errors_of_elements() -> None:
    value, wanted = np.array([1, np.nan, np.inf, 3]), np.array([1, np.nan, 2, 5.5])
    assert errors_of(value, wanted).tolist() == [0, 0, math.inf, 2.5]
