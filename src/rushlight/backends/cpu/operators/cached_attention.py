"""Attention over the key-value cache of a language model's runner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.sizes import at_most_one, same, shape_of
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.operators.facts import REALS
from rushlight.ir.custom_ops.cached_attention import cached_attention
from rushlight.ir.operators import arguments
from rushlight.partition.operators import Operator, val_of
from rushlight.schema import cpu_engine as fb

_TENSORS = ("query", "key", "value")
_INDICES = ("positions", "sequences")


def _why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    for name in _TENSORS:
        val = val_of(args[name])
        if val.dim() != 3 or val.dtype not in REALS:
            return "cached attention takes query, key and value [tokens, heads, width] of numbers"
        if not all(isinstance(size, int) for size in val.shape[1:]):
            return f"the heads of its {name}, or their width, are dynamic"
        if not 0 < val.shape[2] <= fb.Limit.CACHED_WIDTH:
            return (
                f"its {name} has width {val.shape[2]}; 1 to {fb.Limit.CACHED_WIDTH:d} are possible"
            )
    for name in _INDICES:
        if val_of(args[name]).dtype != torch.int64 or val_of(args[name]).dim() != 1:
            return f"its {name} are not int64 [tokens]"
    query, key, value = (val_of(args[name]).shape for name in _TENSORS)
    if key[1] != value[1] or query[2] != key[2] or key[1] == 0 or query[1] % key[1]:
        return "its heads of query, key and value do not belong together"
    if args["layer"] < 0 or args["window"] < 0 or args["softcap"] < 0:
        return "its layer, window or softcap is negative"
    return None


def _cached_attention(b: Builder, node: Node) -> View:
    args = arguments(node)
    views = [_in_rows(b, b.value(args[name])) for name in _TENSORS]
    views += [b.value(args[name]) for name in _INDICES]
    out = b.new(shape_of(node))
    b.emit(
        fb.CachedAttention(args["layer"], args["scale"], args["window"], args["softcap"]),
        views,
        [out],
    )
    return out


def _in_rows(b: Builder, view: View) -> View:
    is_row = at_most_one(view.shape[2]) or same(view.meta.strides[2], 1)
    return view if is_row else b.dense(view)


OPERATORS = {cached_attention: Operator(_cached_attention, _why_not)}
