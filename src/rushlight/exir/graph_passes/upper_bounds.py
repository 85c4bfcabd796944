"""The greatest sizes of results whose sizes depend on data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from rushlight.exir.symbols import eval_expr

Sizes = list[int | None]
Rule = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[int | None]]

upper_bound_shape_inference_table: dict[Any, Rule] = {}
"""The rule of each operator; operators of torch and of the Edge dialect are equal."""


def register_upper_bound_inference(fn: Any) -> Callable[[Rule], Rule]:
    """Makes a function the rule of an operator.

    Args:
        fn: the operator. The function is given the example values of a call's arguments and of its
            keyword arguments, and returns the greatest sizes of the result.
    """

    def register(rule: Rule) -> Rule:
        upper_bound_shape_inference_table[fn] = rule
        return rule

    return register


@register_upper_bound_inference(torch.ops.aten.nonzero.default)
def nonzero(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sizes:
    """A row for each element, at most."""
    return [eval_expr(args[0].numel()), args[0].dim()]


@register_upper_bound_inference(torch.ops.aten.index.Tensor)
def index_Tensor(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sizes:  # noqa: N802
    """The sizes that stay, with those of the indices together at the place of the first one; in
    front, if sizes that stay are between indices. A mask selects all its elements, at most."""
    tensor, indices = args[:2]
    sizes = [eval_expr(size) for size in tensor.shape]
    kept: Sizes = []
    shapes: list[Sizes] = []
    places: list[int] = []
    dim = 0
    for index in indices:
        if index is None:
            kept.append(sizes[dim])
            dim += 1
            continue
        is_mask = index.dtype in (torch.bool, torch.uint8)
        shape = [index.numel()] if is_mask else index.shape
        shapes.append([eval_expr(size) for size in shape])
        places.append(len(kept))
        dim += index.dim() if is_mask else 1
    kept += sizes[dim:]
    if not shapes:
        return kept
    place = places[0] if places[0] == places[-1] else 0
    return [*kept[:place], *_broadcast(shapes), *kept[place:]]


def _broadcast(shapes: Iterable[Sizes]) -> Sizes:
    """Sizes of tensors together, of which those of masks are bounds."""
    columns = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    joined = []
    for column in columns:
        sizes = [size for size in column if size != 1]
        is_known = None not in sizes
        joined.append(min(sizes, default=1) if is_known else None)  # type: ignore[type-var]
    return joined[::-1]
