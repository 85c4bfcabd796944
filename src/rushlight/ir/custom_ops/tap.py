"""`rushlight::tap`: an output of a program that shows a value inside it, reduced by a reducer.

No backend takes the operator, so that its input is computed where it would be without it, and then
leaves the delegate. `edge.passes.taps` replaces it by what its reducer computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch._ops import OpOverload

from rushlight.errors import Code, ExportError

Tensor = torch.Tensor


class SelectionError(ExportError, ValueError):
    """What is to be tapped, or kept of it, does not exist; ExecuTorch raises a ValueError here."""


@dataclass(frozen=True)
class Reducer:
    """What is kept of a value.

    Attributes:
        name: for tables; a process has one reducer of a name.
        fields: the names of the elements that it returns; empty if it returns the value itself.
        eager: of one tensor, in operators of torch, returns a tensor. It computes both eager's
            results and, exported, the program's.
    """

    name: str
    fields: tuple[str, ...]
    eager: Callable[[Tensor], Tensor]


_STATISTICS = (
    *("min", "max", "mean", "abs_max", "abs_mean", "std", "rms", "l1_norm", "l2_norm"),
    *("nan_count", "inf_count", "zero_count", "p99_abs"),
)


def _statistics(value: Tensor) -> Tensor:
    """The numbers of `_STATISTICS`, in float32; nan of what has no elements."""
    numbers = (value.abs() if value.is_complex() else value).to(torch.float32).reshape(-1)
    count = numbers.shape[0]
    if isinstance(count, int) and count == 0:
        return torch.full((len(_STATISTICS),), torch.nan)
    magnitudes, squares = numbers.abs(), numbers * numbers
    mean, mean_square = numbers.mean(), squares.mean()
    # The smallest magnitude of the largest hundredth, which has one element at least.
    largest = torch.topk(magnitudes, (count + 99) // 100).values
    return torch.stack(
        [
            *(numbers.amin(), numbers.amax(), mean, magnitudes.amax(), magnitudes.mean()),
            *((mean_square - mean * mean).abs().sqrt(), mean_square.sqrt()),
            *(magnitudes.sum(), squares.sum().sqrt()),
            *(torch.isnan(numbers).float().sum(), torch.isinf(numbers).float().sum()),
            *((numbers == 0).float().sum(), largest.amin()),
        ]
    )


FULL_TENSOR = Reducer("FULL_TENSOR", (), lambda value: value)
"""Keeps the whole value."""
STATS = Reducer("STATS", _STATISTICS, _statistics)
"""Keeps 13 numbers of the value."""
_REDUCERS = {reducer.name: reducer for reducer in (FULL_TENSOR, STATS)}


def get_reducer(reducer: str | Reducer) -> Reducer:
    """The reducer of a name, or one of the caller's, whose name is kept.

    Raises:
        SelectionError: there is none of that name, or another one has it.
    """
    if isinstance(reducer, str):
        if reducer not in _REDUCERS:
            raise SelectionError(
                f"there is no reducer {reducer!r}; there are {', '.join(sorted(_REDUCERS))}: "
                f"choose one of them, or give a Reducer",
                code=Code.INVALID_ARGUMENT,
            )
        return _REDUCERS[reducer]
    if _REDUCERS.setdefault(reducer.name, reducer) != reducer:
        raise SelectionError(
            f"there is another reducer named {reducer.name!r}: give this one another name",
            code=Code.INVALID_ARGUMENT,
        )
    return reducer


def _tap(value: Tensor, reducer: str) -> Tensor:
    reduced = get_reducer(reducer).eager(value)
    return reduced.clone() if reduced is value else reduced


def _tap_out(value: Tensor, reducer: str, *, out: Tensor) -> Tensor:
    return out.copy_(_tap(value, reducer))


_LIB = torch.library.Library("rushlight", "FRAGMENT")
_LIB.define("tap(Tensor value, str reducer) -> Tensor")
_LIB.define("tap.out(Tensor value, str reducer, *, Tensor(a!) out) -> Tensor(a!)")
_LIB.impl("tap", _tap, "CompositeExplicitAutograd")
_LIB.impl("tap.out", _tap_out, "CompositeExplicitAutograd")
torch.library.register_fake("rushlight::tap", _tap, lib=_LIB)  # for dynamic sizes

tap: OpOverload = torch.ops.rushlight.tap.default
"""The operator."""
