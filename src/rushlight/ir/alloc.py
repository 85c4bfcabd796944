"""Operators of the Out dialect that ATen does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rushlight.ir.spec import TensorSpec


def alloc(spec: TensorSpec) -> torch.Tensor:
    """A tensor that the memory planner will place; it is not an instruction.

    With `spec.alias_of` it is a view of the same bytes with other sizes.
    """
    return torch.empty(tuple(spec.shape), dtype=spec.dtype)


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
