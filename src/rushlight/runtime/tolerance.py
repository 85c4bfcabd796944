"""How far results may differ from those that are expected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """Largest allowed difference: absolute, and relative to the largest magnitude of the value.

    Integers may differ by `units`.
    """

    absolute: float = 1e-5
    relative: float = 1e-4
    units: int = 0

    def exceeded(self, got: np.ndarray, wanted: np.ndarray) -> str | None:
        """Why `got` is not `wanted`, or None."""
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            return (
                f"it is {got.dtype}{list(got.shape)}, eager gives "
                f"{wanted.dtype}{list(wanted.shape)}"
            )
        if not np.issubdtype(wanted.dtype, np.inexact):
            different = got != wanted
            if self.units and wanted.dtype != np.bool_:
                different = np.abs(got.astype(np.int64) - wanted.astype(np.int64)) > self.units
            wrong = int(different.sum())
            return f"{wrong} of {wanted.size} values differ" if wrong else None
        finite = np.isfinite(wanted)
        with np.errstate(invalid="ignore"):
            same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        if not same[~finite].all():
            return "its NaN or infinite values are not eager's"
        if not finite.any():
            return None
        difference = float(np.abs(got[finite] - wanted[finite]).max())
        allowed = self.allowed(wanted)
        if difference <= allowed:
            return None
        return f"it differs by up to {difference:.3g}, allowed is {allowed:.3g}"

    def allowed(self, wanted: np.ndarray[Any, Any]) -> float:
        """The largest difference from `wanted` that is allowed, in any element."""
        if not np.issubdtype(wanted.dtype, np.inexact):
            return self.units
        finite = np.abs(wanted[np.isfinite(wanted)])
        return self.absolute + self.relative * float(finite.max(initial=0))


# Relative to the largest value: some units of the last bit of half precisions, since sums in
# another order round differently.
_RELATIVE = {"float16": 1e-2, "bfloat16": 5e-2}


def tolerance_of_dtypes(dtypes: Iterable[str]) -> Tolerance:
    """The tolerance for what is computed in some dtypes, by the coarsest of them."""
    coarse = [_RELATIVE[dtype] for dtype in dtypes if dtype in _RELATIVE]
    return Tolerance(relative=max(coarse)) if coarse else Tolerance()
