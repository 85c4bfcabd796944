"""Operators that write a part of a tensor, in a functional form.

The compiler's graphs are functional: `rushlight::updated_cache` returns the whole cache with the
new tokens in it. Lowering writes in place, by the operator that `in_place` names, and makes a copy
first only where the old content is needed as well. `functional_form` makes such an operator of any
operator of torch.library that writes its arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._C import DispatchKey
from torch._ops import OpOverload

from rushlight.ir.custom_ops.derived import TORCH, define, out_variant_of, schema_of
from rushlight.schema.operators import Argument

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
_CACHES = {updated_cache: "update_cache", updated_cache_at: "update_cache_with_indices"}


@dataclass(frozen=True)
class InPlace:
    """How a functional operator's work is done in place.

    Attributes:
        operator: the operator that does it.
        written: the numbers of the arguments that the functional operator returns changed, one
            result for each, behind its other results.
        n_results: how many other results it has.
    """

    operator: OpOverload
    written: tuple[int, ...]
    n_results: int = 0

    def result_of(self, number: int) -> int:
        """The number of the result that is argument `number` changed."""
        return self.n_results + self.written.index(number)


_FUNCTIONAL: dict[OpOverload, InPlace] = {}


def in_place(target: object) -> InPlace | None:
    """How to do in place what `target` does; None if `target` is none of these operators."""
    name = _CACHES.get(target)  # type: ignore[call-overload]
    if name is not None:
        return InPlace(getattr(torch.ops.llama, name).out, (1,))
    return _FUNCTIONAL.get(target)  # type: ignore[call-overload, no-any-return]


def writes(target: object) -> bool:
    """Whether `target` is an operator of torch.library that writes its arguments, and that torch
    does not decompose by itself."""
    return (
        isinstance(target, OpOverload)
        and target.namespace not in TORCH
        and target._schema.is_mutable
        and not any(argument.is_out for argument in target._schema.arguments)
        and not target.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)
    )


def functional_form(target: OpOverload) -> OpOverload:
    """The functional form of an operator that writes its arguments: it returns the results, then
    what each of these arguments becomes. It is defined when it is first asked for.

    Raises:
        ValueError: it writes something else than a tensor that is given by position.
    """
    schema = schema_of(target)
    written = tuple(i for i, a in enumerate(schema.arguments) if a.is_written)
    if any(schema.arguments[i].keyword_only or schema.arguments[i].letter != "w" for i in written):
        raise ValueError(
            f"{schema}: what it writes must be tensors, no lists or optional ones, and be given "
            f"by position"
        )
    results = tuple(result for result in schema.returns if not result.is_written)
    overload = f"{schema.overload}_functional" if schema.overload else "functional"
    arguments = (replace(a, type="Tensor") if a.is_written else a for a in schema.arguments)
    form = replace(
        schema,
        overload=overload,
        arguments=tuple(arguments),
        returns=(*results, *(Argument("Tensor") for _ in written)),
    )

    def compute(*args: Any, **kwargs: Any) -> Any:
        copies = [arg.clone() if i in written else arg for i, arg in enumerate(args)]
        returned = target(*copies, **kwargs)
        own = returned if isinstance(returned, tuple) else (returned,)
        every = [*own[: len(results)], *(copies[i] for i in written)]
        return every[0] if len(every) == 1 else tuple(every)

    defined = define(form, compute)
    operator = out_variant_of(target)
    if operator is None:
        raise ValueError(f"{schema}: its results must be tensors")
    _FUNCTIONAL[defined] = InPlace(operator, written, len(results))
    return defined
