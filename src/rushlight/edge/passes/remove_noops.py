"""Remove operators that return their input unchanged, and merge chains of views and permutes."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from rushlight.ir.rewrite import replace
from rushlight.ir.spec import dim_order_of

aten = torch.ops.aten
_VIEWS = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}
_SAME_IF_SHAPE = _VIEWS | {aten.expand.default, aten.repeat.default}
_COPIES = {aten.clone.default, aten._to_copy.default}
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


def _takes_layout(node: Node, laid_out: set[Node]) -> bool:
    """Whether a value may have another layout than the row-major one.

    Such a layout comes from an input, from a constant, or from a copy into channels-last order; a
    result takes the layout of its inputs of its rank, and views and permutes are copied row-major.
    """
    if node.op != "call_function":
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return False
        return dim_order_of(value) != tuple(range(value.dim()))
    if node.target in _SAME_IF_SHAPE or node.target is aten.permute.default:
        return False
    if node.target in _COPIES and node.kwargs.get("memory_format") not in _KEEPING:
        return True
    if node.target in _COPIES and node.kwargs.get("memory_format") is torch.contiguous_format:
        return False
    return any(source in laid_out for source in node.all_input_nodes)


def _is_noop(node: Node, laid_out: set[Node]) -> bool:
    target = node.target
    source: Any = node.args[0] if node.args else None
    if target in _COPIES:
        is_clone = target is aten.clone.default
        same_dtype = is_clone or node.meta["val"].dtype == source.meta["val"].dtype
        wanted = node.kwargs.get("memory_format")
        same_layout = wanted is not torch.contiguous_format or source not in laid_out
        return same_dtype and same_layout and wanted in _KEEPING
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

    Every tensor of a program is dense, so that a copy into the row-major layout changes something
    only where a value has another one; copies into channels-last order stay.
    """
    laid_out: set[Node] = set()
    for node in list(graph.nodes):
        if node.op == "call_function":
            _merge(node)
            if _is_noop(node, laid_out):
                replace(node, node.args[0])
                continue
        if _takes_layout(node, laid_out):
            laid_out.add(node)
