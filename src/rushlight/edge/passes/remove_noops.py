"""Remove operators that return their input unchanged, and merge chains of views and permutes."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from rushlight.ir.rewrite import replace

aten = torch.ops.aten
_VIEWS = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}
_SAME_IF_SHAPE = _VIEWS | {aten.expand.default, aten.repeat.default}
_KEEPING = (None, torch.contiguous_format, torch.preserve_format)


def _same_shape(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dim() != b.dim():
        return False
    for x, y in zip(a.shape, b.shape, strict=True):
        if isinstance(x, int) and isinstance(y, int):
            if x != y:
                return False
        elif str(x) != str(y):  # symbols are compared by name: a guard must not be added
            return False
    return True


def _is_noop(node: Node) -> bool:
    target = node.target
    source: Any = node.args[0] if node.args else None
    if target is aten.clone.default:
        return node.kwargs.get("memory_format") in _KEEPING
    if target is aten._to_copy.default:
        same_dtype = node.meta["val"].dtype == source.meta["val"].dtype
        return same_dtype and node.kwargs.get("memory_format") in _KEEPING
    if target in _SAME_IF_SHAPE:
        return _same_shape(node.meta["val"], source.meta["val"])
    if target is aten.constant_pad_nd.default:
        pads: Any = node.args[1]
        return not any(pads)
    if target is aten.permute.default:
        dims: Any = node.args[1]
        return list(dims) == list(range(len(dims)))
    return False


def _drop_empty(node: Node) -> None:
    """Let cat join only tensors that have elements, if there are any."""
    tensors, result = list(node.args[0]), node.meta["val"]  # type: ignore[arg-type]
    kept = [t for t in tensors if 0 not in [s for s in t.meta["val"].shape if isinstance(s, int)]]
    if kept and all(t.meta["val"].dtype == result.dtype for t in kept):
        node.args = (kept, *node.args[1:])


def _merge(node: Node) -> None:
    """Merge view(view(x)) into one view, and permute(permute(x)) into one permute."""
    if node.target is aten.cat.default:
        _drop_empty(node)
    source = node.args[0]
    if not isinstance(source, Node):
        return
    if node.target in _VIEWS and source.target in _VIEWS:
        node.args = (source.args[0], *node.args[1:])
    elif node.target is aten.permute.default and source.target is aten.permute.default:
        outer: Any = node.args[1]
        inner: Any = source.args[1]
        node.args = (source.args[0], [inner[d] for d in outer])


def remove_noops(graph: Graph) -> None:
    """Let users of an operator that changes nothing use its input.

    An operator that changes only the layout counts as one that changes nothing: every tensor of a
    program is dense, and only `dim_order_ops` set a layout. This pass keeps those, and explicit
    channels-last copies.
    """
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        _merge(node)
        if _is_noop(node):
            replace(node, node.args[0])
