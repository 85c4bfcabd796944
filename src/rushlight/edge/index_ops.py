"""Rules for operators that read or write elements by index, in terms of those with kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten


def _scatter_reduce(
    self: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    src: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> torch.Tensor:
    """Compute a mean as a sum divided by a count; the other reductions have a kernel."""
    if reduce != "mean":
        return NotImplemented  # type: ignore[no-any-return]
    total = aten.scatter_reduce.two(self, dim, index, src, "sum", include_self=include_self)
    count = torch.ones_like(self) if include_self else torch.zeros_like(self)
    count = aten.scatter_add.default(count, dim, index, torch.ones_like(src))
    count = torch.where(count == 0, 1, count)
    return torch.div(total, count, rounding_mode=None if self.is_floating_point() else "floor")


def _index_reduce(
    self: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> torch.Tensor:
    """A `scatter_reduce` whose index is the same in all other dimensions."""
    shape = [1] * source.dim()
    if shape:
        shape[dim] = -1
    places = index.long().reshape(shape).expand(source.shape)
    return aten.scatter_reduce.two(  # type: ignore[no-any-return]
        self, dim, places, source, reduce, include_self=include_self
    )


def _put(
    self: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False
) -> torch.Tensor:
    values = source.reshape(-1)
    flat = aten.index_put(self.reshape(-1), [index.reshape(-1)], values, accumulate)
    return flat.reshape(self.shape)  # type: ignore[no-any-return]


def _take(self: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Replaces torch's rule, which reads a 0-d index as a Python number; export cannot trace it."""
    return aten.index(self.reshape(-1), [index])  # type: ignore[no-any-return]


def _unique_consecutive(
    self: torch.Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Refuse a dimension counted from the end, for which torch captures wrong result shapes."""
    if dim is None or dim >= 0:
        return NotImplemented
    raise ValueError(
        f"unique_consecutive counts dim={dim} from the end, for which torch captures a wrong "
        f"shape: give dim={dim + self.dim()}"
    )


INDEX_DECOMPOSITIONS: dict[OpOverload, Callable[..., Any]] = {
    aten.index_reduce.default: _index_reduce,
    aten.put.default: _put,
    aten.take.default: _take,
    aten.scatter_reduce.two: _scatter_reduce,
    aten.unique_consecutive.default: _unique_consecutive,
}
