"""The differences from eager's values that are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram

from rushlight.runtime.tolerance import Tolerance as Tolerance
from rushlight.runtime.tolerance import tolerance_of_dtypes

# Some of 8 bits, since one rounding changes all later values.
_QUANTISED = Tolerance(relative=5e-2, units=2)


def tolerance_of(program: ExportedProgram) -> Tolerance:
    """The tolerance for `program`, by the coarsest dtype that it computes with."""
    if quantises(program):
        return _QUANTISED
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    dtypes = {getattr(n.meta.get("val"), "dtype", None) for n in calls}
    return tolerance_of_dtypes(str(dtype).removeprefix("torch.") for dtype in dtypes)


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
