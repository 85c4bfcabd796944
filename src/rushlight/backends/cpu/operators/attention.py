"""Scaled dot product attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.sizes import Size, all_same, at_most_one, same, shape_of, sizes_of
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.operators.facts import REALS
from rushlight.backends.cpu.tiles.terms import Term, constant
from rushlight.ir.operators import arguments
from rushlight.partition.operators import Operator, val_of
from rushlight.schema import cpu_engine as fb
from rushlight.schema.cpu_engine import TileOp

aten = torch.ops.aten
NEVER = -1e9
"""A score that this, or less, is added to has no weight beside others."""


def _attention_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    for name in ("query", "key", "value"):
        if val_of(args[name]).dim() != 4 or val_of(args[name]).dtype not in REALS:
            return "the engine's attention takes [batch, heads, length, width] of real numbers"
    if not isinstance(val_of(args["query"]).shape[3], int):
        return "the width of its heads is dynamic"
    if args["dropout_p"]:
        return "the engine's attention has no dropout"
    mask = args["attn_mask"]
    if mask is not None and val_of(mask).dtype not in (*REALS, torch.bool):
        return "the engine's attention takes masks of real numbers or bool"
    return None


def _attention(b: Builder, node: Node) -> View:
    args = arguments(node)
    views = [_in_rows(b, b.value(args[n])) for n in ("query", "key", "value")]
    shape = shape_of(node)
    sizes = (*shape[:3], views[1].shape[2])
    mask, causal = _mask(b, args["attn_mask"], sizes)
    scale = args["scale"]
    if scale is None:
        scale = val_of(args["query"]).shape[3] ** -0.5
    # Rows of all heads lie beside one another, as the projection behind them wants it.
    out = b.new(shape, (0, 2, 1, 3))
    operation = fb.Attention(scale, causal or bool(args["is_causal"]))
    b.emit(operation, [*views, mask], [out])
    return out


def _mask(b: Builder, node: Any, sizes: Sequence[Size]) -> tuple[View | None, bool]:
    """What is added to scores, and whether that is what causal attention does by itself."""
    if node is None:
        return None, False
    data = b.data(node)
    if data is not None and masks_nothing(data):
        return None, False
    if data is not None and all_same(sizes_of(data.shape[-2:]), sizes[-2:]) and is_causal(data):
        return None, True
    if data is not None and data.dtype == torch.bool:
        view = b.constant((node, "added"), lambda: added(data))
    else:
        view = b.value(node)
        if view.meta.dtype == torch.bool:
            view = b.once((node, "added"), lambda: _added(b, view))
    return view.moved(view.meta.expand(sizes)), False


def masks_nothing(mask: torch.Tensor) -> bool:
    """Whether a constant mask leaves all scores as they are."""
    return bool(mask.all() if mask.dtype == torch.bool else (mask == 0).all())


def is_causal(mask: torch.Tensor) -> bool:
    """Whether a constant mask lets each query see the keys up to its own number, and no others."""
    if mask.dim() < 2:
        return False
    if mask.dtype != torch.bool:
        if not bool(((mask == 0) | (mask <= NEVER)).all()):
            return False
        mask = mask == 0
    return torch.equal(mask, torch.ones_like(mask).tril())


def added(allowed: torch.Tensor) -> torch.Tensor:
    """What is added to scores for a mask of what is allowed."""
    return torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf).contiguous()


def _added(b: Builder, allowed: View) -> View:
    return b.term(lambda load: added_term(load(allowed)), allowed.shape)


def added_term(allowed: Term) -> Term:
    """The same of a mask that is computed."""
    never = constant(-math.inf)
    return Term(TileOp.WHERE, (allowed, constant(0), never))


def _in_rows(b: Builder, view: View) -> View:
    is_row = at_most_one(view.shape[3]) or same(view.meta.steps[3], 1)
    return view if is_row else b.dense(view)


OPERATORS = {
    aten.scaled_dot_product_attention.default: Operator(_attention, _attention_why_not),
}
