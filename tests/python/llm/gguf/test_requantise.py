"""Integers without offsets stand for nearly the numbers of those with offsets."""

from __future__ import annotations

import numpy as np
import pytest

from rushlight.llm.gguf.requantise import without_offsets


def _errors(integers: np.ndarray, scales: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The greatest error of each group, as a share of its greatest number."""
    made, stored = without_offsets(integers, scales, offsets)
    assert made.dtype == np.int8 and stored.dtype == np.float32
    assert made.min() >= -127
    real = integers * scales[:, None].astype(np.float64) + offsets[:, None]
    got = made * stored[:, None].astype(np.float64)
    return np.abs(got - real).max(1) / np.abs(real).max(1)


@pytest.mark.parametrize(("greatest", "share"), [(3, 0.35), (15, 0.6), (31, 0.8)])
def test_numbers_around_zero_lose_less_than_by_rounding_each(greatest: int, share: float) -> None:
    groups = 2000
    integers = np.random.randint(0, greatest + 1, (groups, 32), dtype=np.uint8)
    scales = np.random.uniform(0.5, 1, groups) * np.random.choice([-1, 1], groups)
    offsets = -scales * np.random.uniform(0.3, 0.7, groups) * greatest
    errors = _errors(integers, scales.astype(np.float32), offsets.astype(np.float32))
    # Rounding to the grid of the greatest number is off by up to half of 1 / 127.
    assert np.sqrt(np.square(errors).mean()) < share / 127 / np.sqrt(12)


@pytest.mark.parametrize(
    ("scale", "offset", "allowed"),
    [
        (0.25, -1.5, 0),  # a multiple
        (0.25, -1.5 + 0.25 / 7, 0),  # a seventh part
        (0.0, 3.0, 1e-6),
        (0.0, 0.0, 0),
        (1e-3, 1.0, 0.5 / 127),  # far from zero
        (-1e-30, 1e30, 0.5 / 127),
    ],
)
def test_offsets_of_any_size(scale: float, offset: float, allowed: float) -> None:
    integers = np.arange(16, dtype=np.uint8)[None]
    with np.errstate(invalid="ignore"):
        [error] = _errors(integers, np.float32([scale]), np.float32([offset]))
    assert np.isnan(error) if scale == offset == 0 else error <= allowed + 1e-6
