"""Operators of the Out dialect that ATen does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

AllocSpec = tuple[Any, ...]
"""(sizes, dtype), and for a tensor that is not row-major its dim order too."""


def alloc(spec: AllocSpec | list[AllocSpec]) -> Any:
    """A tensor that the memory planner will place, or a list of them; it is not an instruction.

    The node's `meta["spec"]` is its `TensorSpec`. With `alias_of` it is a view of the same bytes
    with other sizes.
    """
    if isinstance(spec, list):
        return [alloc(one) for one in spec]
    shape, dtype, *order = spec
    return _in_order(lambda sizes: torch.empty(sizes, dtype=dtype), shape, *order)


def view(
    base: torch.Tensor, size: Sequence[int], dim_order: Sequence[int] | None = None
) -> torch.Tensor:
    """The elements of a dense tensor, as they lie in memory, with other sizes.

    Args:
        base: the tensor whose memory is shared.
        size: the sizes; one may be -1 if `dim_order` is None.
        dim_order: the dimensions from outermost to innermost in memory; None means row-major.
    """
    flat = base.permute(base.dim_order()).view(-1) if base.dim() else base.view(-1)
    return _in_order(flat.view, size, dim_order)


def free(spec: Any) -> None:
    """The end of the life of a tensor without a bound; it is not an instruction."""


def _in_order(
    make: Callable[[list[int]], torch.Tensor],
    shape: Sequence[int],
    dim_order: Sequence[int] | None = None,
) -> torch.Tensor:
    """What `make` gives for sizes that lie in memory in this order."""
    order = list(range(len(shape))) if dim_order is None else list(dim_order)
    return make([shape[d] for d in order]).permute([order.index(d) for d in range(len(order))])


def et_view(base: torch.Tensor, size: Sequence[int], out: torch.Tensor) -> torch.Tensor:
    """A view whose sizes are known only at run time (`executorch_prim::et_view.default`)."""
    return base.reshape(tuple(size))


def call_delegate(module: Any, inputs: Sequence[Any], outs: Sequence[torch.Tensor]) -> None:
    """Run a partition that was lowered for a backend (a `DelegateCall`).

    Args:
        module: the `LoweredBackendModule`.
        inputs: its inputs.
        outs: the tensors that it writes.
    """
    results = module(*inputs)
    for out, result in zip(outs, results, strict=True):
        out.copy_(result)
