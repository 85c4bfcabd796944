"""Integers with scales alone in place of integers with scales and offsets."""

from __future__ import annotations

import numpy as np

from rushlight.llm.gguf.blocks import Bytes, Floats, Integers

_MOST = 127


def without_offsets(integers: Bytes, scales: Floats, offsets: Floats) -> tuple[Integers, Floats]:
    """Integers from -127 to 127 and scales that stand for nearly the same numbers.

    A scale is a whole part of the group's own one, so that all numbers of the group are off by the
    same rounding of the offset. Of the parts whose integers are not too large, it is that with the
    least rounding.

    Args:
        integers: [groups, elements].
        scales: [groups], finite.
        offsets: [groups], finite.

    Returns:
        integers [groups, elements], scales [groups].
    """
    ends = np.stack([integers.min(1), integers.max(1)], axis=1).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = offsets / scales
        largest = 2 * _MOST // max(int(integers.max()), 1)  # that the range from -127 to 127 has
        parts = np.arange(1, largest + 1, dtype=np.float32)
        shifts = np.rint(ratios[:, None] * parts)
        most = np.abs(ends[:, None] * parts[:, None] + shifts[..., None]).max(-1)
        errors = np.where(most <= _MOST, np.abs(shifts / parts - ratios[:, None]), np.inf)
    best = errors.argmin(1)
    here = np.arange(len(best))
    fits = np.isfinite(errors[here, best])
    part, shift = parts[best], np.where(fits, shifts[here, best], 0)
    made = (integers * part[:, None] + shift[:, None]).astype(np.float32)
    stored = scales / part
    if not fits.all():  # the offset is far greater than the scale, or there is no scale
        rest = ~fits
        real = integers[rest] * scales[rest, None] + offsets[rest, None]
        stored[rest] = np.maximum(np.abs(real).max(1) / _MOST, np.finfo(np.float32).tiny)
        made[rest] = np.rint(real / stored[rest, None])
    return made.clip(-_MOST, _MOST).astype(np.int8), stored
