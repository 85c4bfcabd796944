"""`rushlight::cached_attention`: attention over the key-value cache that a runner owns.

The tokens of a call are those of any number of sequences, in ragged rows: token i stands at
`positions[i]` of sequence `sequences[i]`. Its key and value are stored there first; then it attends
to the positions of its sequence up to its own. In a program the runner lends the cache; here, in
eager PyTorch, `EagerCache` is one, which makes the operator its own reference.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch._ops import OpOverload
from torch.fx.node import has_side_effect

_ARGUMENTS = (
    "Tensor query, Tensor key, Tensor value, Tensor positions, Tensor sequences, int layer, "
    "float scale, int window=0, float softcap=0.0"
)
_LIB = torch.library.Library("rushlight", "FRAGMENT")
_ACTIVE: ContextVar[EagerCache | None] = ContextVar("active_cache", default=None)


class EagerCache:
    """Keys and values by layer and sequence, [position, heads, width] each."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = {}

    @contextlib.contextmanager
    def active(self) -> Iterator[EagerCache]:
        """Within it, calls of `cached_attention` use this cache."""
        token = _ACTIVE.set(self)
        try:
            yield self
        finally:
            _ACTIVE.reset(token)

    def sizes(self) -> tuple[int, int, int, int, int, int] | None:
        """What it holds: layers, heads, width of keys and of values, sequences, positions."""
        if not self._rows:
            return None
        layers, sequences = (1 + max(numbers) for numbers in zip(*self._rows, strict=True))
        keys, values = zip(*self._rows.values(), strict=True)
        heads, width, value_width = (
            max(rows.shape[axis] for rows in parts)
            for parts, axis in ((keys, 1), (keys, 2), (values, 2))
        )
        return layers, heads, width, value_width, sequences, max(map(len, keys))

    def store(
        self, layer: int, sequence: int, position: int, key: torch.Tensor, value: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Replace what follows `position` by the key and value of `position`; return all."""
        rows = []
        for old, new in zip(
            self._rows.get((layer, sequence), (key[:0], value[:0])), (key, value), strict=True
        ):
            if position > len(old):
                raise ValueError(
                    f"position {position} of sequence {sequence} comes after "
                    f"{len(old)} positions: positions in between were never given"
                )
            rows.append(torch.cat([old[:position], new]))
        self._rows[layer, sequence] = rows[0], rows[1]
        return rows[0], rows[1]


def _cached_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    positions: torch.Tensor,
    sequences: torch.Tensor,
    layer: int,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> torch.Tensor:
    """Attention of query [tokens, heads, width] with grouped heads: [tokens, heads, value width].

    `key` [tokens, key heads, width], `value` [tokens, key heads, value width]; `positions` and
    `sequences` are int64 [tokens]. Scores are multiplied by `scale` and, unless `softcap` is 0,
    become softcap * tanh(score / softcap). With a `window` a token sees that many positions, its
    own included; 0 means all.
    """
    cache = _ACTIVE.get()
    if cache is None:
        raise RuntimeError(
            "cached_attention has no cache: run the model within `EagerCache().active()`"
        )
    group = query.shape[1] // key.shape[1]
    results = []
    for i, (position, sequence) in enumerate(
        zip(positions.tolist(), sequences.tolist(), strict=True)
    ):
        keys, values = cache.store(layer, sequence, position, key[i : i + 1], value[i : i + 1])
        first = max(0, position + 1 - window) if window else 0
        keys = keys[first:].repeat_interleave(group, 1)
        values = values[first:].repeat_interleave(group, 1)
        scores = torch.einsum("hd,thd->ht", query[i], keys) * scale
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        results.append(torch.einsum("ht,thd->hd", scores.softmax(-1), values))
    if not results:
        return query.new_empty(0, query.shape[1], value.shape[2])
    return torch.stack(results)


def _shape(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object) -> torch.Tensor:
    return query.new_empty(query.shape[0], query.shape[1], value.shape[2])


def _cached_attention_out(*args: object, out: torch.Tensor) -> torch.Tensor:
    return out.copy_(_cached_attention(*args))  # type: ignore[arg-type]


_LIB.define(f"cached_attention({_ARGUMENTS}) -> Tensor")
_LIB.define(f"cached_attention.out({_ARGUMENTS}, *, Tensor(a!) out) -> Tensor(a!)")
_LIB.impl("cached_attention", _cached_attention, "CompositeExplicitAutograd")
_LIB.impl("cached_attention.out", _cached_attention_out, "CompositeExplicitAutograd")
torch.library.register_fake("rushlight::cached_attention", _shape, lib=_LIB)

cached_attention: OpOverload = torch.ops.rushlight.cached_attention.default
"""The operator. What it stores is an effect that its schema does not show."""
has_side_effect(cached_attention)
