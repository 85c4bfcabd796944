"""`rushlight::adapter`: what the adapters (LoRA) of a language model's runner add to the results of
linear layers of the same rows.

Token i is computed with the adapter of `sequences[i]`. In a program the runner lends the adapters
of its sequences; here, in eager PyTorch, `EagerAdapters` has them, which makes the operator its own
reference. A sequence without an adapter keeps its results.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch._ops import OpOverload

Tensor = torch.Tensor
Sites = Mapping[int, tuple[Tensor, Tensor]]
"""By a layer's number: A [rank, in] and B [out, rank], which has the scale."""

_ARGUMENTS = "Tensor result, Tensor x, Tensor sequences, int[] sites, int[] widths, int rank"
_LIB = torch.library.Library("rushlight", "FRAGMENT")
_ACTIVE: ContextVar[EagerAdapters | None] = ContextVar("active_adapters", default=None)


class EagerAdapters:
    """The adapters of sequences.

    Args:
        by_sequence: by the number of the sequence; those that are not there have none.
    """

    def __init__(self, by_sequence: Mapping[int, Sites]) -> None:
        self.by_sequence = dict(by_sequence)

    @contextlib.contextmanager
    def active(self) -> Iterator[EagerAdapters]:
        """Within it, calls of `adapter` use these."""
        token = _ACTIVE.set(self)
        try:
            yield self
        finally:
            _ACTIVE.reset(token)


def _adapter(
    result: Tensor,
    x: Tensor,
    sequences: Tensor,
    sites: Sequence[int],
    widths: Sequence[int],
    rank: int,
) -> Tensor:
    """Results of layers side by side [..., sum of widths], with what adapters add to them.

    `x` [..., in] are the layers' inputs, `sequences` int64 [tokens]; `sites` are the numbers of the
    layers, `widths` the columns of each, and `rank` is the greatest that an adapter may have.
    """
    adapters = _ACTIVE.get()
    made = result.clone()
    if adapters is None:
        return made
    rows, inputs = made.view(-1, made.shape[-1]), x.reshape(-1, x.shape[-1])
    for i, sequence in enumerate(sequences.tolist()):
        column = 0
        for site, width in zip(sites, widths, strict=True):
            a, b = adapters.by_sequence.get(sequence, {}).get(site, (None, None))
            if a is not None and b is not None:
                rows[i, column : column + width] += (inputs[i] @ a.t()) @ b.t()
            column += width
    return made


def _adapter_out(*args: object, out: Tensor) -> Tensor:
    return out.copy_(_adapter(*args))  # type: ignore[arg-type]


def _shape(result: Tensor, x: Tensor, sequences: Tensor, *_: object) -> Tensor:
    # One size after the other: comparing lists of them would fix sizes that are dynamic.
    rows: list[Any] = list(x.shape[:-1])
    for size, own in zip(result.shape, rows, strict=False):
        torch._check(size == own, lambda: "its rows are not those of the results")
    torch._check(
        math.prod(rows) == sequences.shape[0],
        lambda: "a layer with an adapter must have one row for each token of the step",
    )
    return torch.empty_like(result, memory_format=torch.contiguous_format)


_LIB.define(f"adapter({_ARGUMENTS}) -> Tensor")
_LIB.define(f"adapter.out({_ARGUMENTS}, *, Tensor(a!) out) -> Tensor(a!)")
_LIB.impl("adapter", _adapter, "CompositeExplicitAutograd")
_LIB.impl("adapter.out", _adapter_out, "CompositeExplicitAutograd")
torch.library.register_fake("rushlight::adapter", _shape, lib=_LIB)

adapter: OpOverload = torch.ops.rushlight.adapter.default
"""The operator."""
