"""Operators that write a part of a tensor, in a functional form.

The compiler's graphs are functional: `rushlight::updated_cache` returns the whole cache with the
new tokens in it. Lowering writes in place, by the operator that `in_place` names, and makes a copy
first only where the old content is needed as well.
"""

from __future__ import annotations

import torch
from torch._ops import OpOverload

Tensor = torch.Tensor

_LIB = torch.library.Library("rushlight", "FRAGMENT")
_UPDATED = "Tensor value, Tensor cache, SymInt start_pos"
_UPDATED_AT = f"{_UPDATED}, Tensor indices"


def _updated_cache(value: Tensor, cache: Tensor, start_pos: int) -> Tensor:
    """The cache [batch, positions, heads, width] with `value` from position `start_pos` on."""
    new = cache.clone()
    new.narrow(1, start_pos, value.shape[1]).copy_(value)
    return new


def _updated_cache_at(value: Tensor, cache: Tensor, start_pos: int, indices: Tensor) -> Tensor:
    """The cache with token i of batch b of `value` at position `indices[b, i]`."""
    batch = torch.arange(value.shape[0], device=value.device).unsqueeze(1)
    return cache.index_put((batch, indices), value)


def _like_cache(value: Tensor, cache: Tensor, *_: object) -> Tensor:
    return torch.empty_like(cache)


for _name, _arguments, _kernel in (
    ("updated_cache", _UPDATED, _updated_cache),
    ("updated_cache_at", _UPDATED_AT, _updated_cache_at),
):
    _LIB.define(f"{_name}({_arguments}) -> Tensor")
    _LIB.define(f"{_name}.out({_arguments}, *, Tensor(a!) out) -> Tensor(a!)")
    _LIB.impl(_name, _kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"rushlight::{_name}", _like_cache, lib=_LIB)

updated_cache: OpOverload = torch.ops.rushlight.updated_cache.default
updated_cache_at: OpOverload = torch.ops.rushlight.updated_cache_at.default
_IN_PLACE = {updated_cache: "update_cache", updated_cache_at: "update_cache_with_indices"}

WRITTEN = 1
"""The number of the argument that these operators return changed."""


def in_place(target: object) -> OpOverload | None:
    """The operator that does in place what `target` does; None if `target` is none of these."""
    name = _IN_PLACE.get(target)  # type: ignore[call-overload]
    if name is None:
        return None
    operator: OpOverload = getattr(torch.ops.llama, name).out
    return operator
