"""The differences from eager's values that are allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram


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
        allowed = self.absolute + self.relative * float(np.abs(wanted[finite]).max())
        if difference <= allowed:
            return None
        return f"it differs by up to {difference:.3g}, allowed is {allowed:.3g}"


# Relative to the largest value: some units of the last bit of half precisions, since sums in
# another order round differently, and some of 8 bits, since one rounding changes all later values.
_RELATIVE = {torch.float16: 1e-2, torch.bfloat16: 5e-2}
_QUANTISED = Tolerance(relative=5e-2, units=2)


def tolerance_of(program: ExportedProgram) -> Tolerance:
    """The tolerance for `program`, by the coarsest dtype that it computes with."""
    if quantises(program):
        return _QUANTISED
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    dtypes = {getattr(n.meta.get("val"), "dtype", None) for n in calls}
    coarse = [relative for dtype, relative in _RELATIVE.items() if dtype in dtypes]
    return Tolerance(relative=max(coarse)) if coarse else Tolerance()


def quantises(program: ExportedProgram) -> bool:
    """Whether a captured program rounds values to integers when it runs."""
    names = [str(n.target) for n in program.graph.nodes]
    return any(".quantize_" in name or ".fake_quantize_" in name for name in names)


def difference(ours: Any, eager: Any, tolerance: Tolerance) -> str | None:
    """Why a result of the runtime is not eager's, or None."""
    if isinstance(eager, torch.Tensor | float):
        return tolerance.exceeded(as_array(ours), as_array(eager))
    return None if ours == eager else f"it is {ours!r}, eager gives {eager!r}"


def as_array(value: Any) -> np.ndarray:
    """`value` as an array; half precisions become float32, which holds them exactly."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        half = value.dtype in (torch.bfloat16, torch.float16)
        return (value.float() if half else value).numpy()  # type: ignore[no-any-return]
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name in ("float16", "bfloat16") else array
