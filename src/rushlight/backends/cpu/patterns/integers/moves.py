"""Calls that only move elements move bytes: values are quantised before, and dequantised after.

Both are exact: an elementwise function may be computed before or after its elements are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, traced_shape
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.integers.facts import MOVES, PARTS, Quantization, is_greatest
from rushlight.backends.cpu.operators.images import window_of
from rushlight.ir.operators import arguments

aten = torch.ops.aten


def quantize_early(r: Rewriter) -> None:
    """Quantise before calls that only move elements, where nothing else uses their results."""
    for node in reversed(list(r.graph.nodes)):
        stack = [node] if node.target is calls.quantize else []
        while stack:
            stack += _before(r, stack.pop())
    r.clean()


def _before(r: Rewriter, node: Node) -> list[Node]:
    """Move one quantising call before the call that moved its input; the new quantising calls."""
    source: Node = node.args[0]  # type: ignore[assignment]
    to: Quantization = node.args[1]  # type: ignore[assignment]
    if len(source.users) > 1:
        return []
    if source.target in MOVES:
        [inner] = source.all_input_nodes[:1]
        if source.target in PARTS and len(inner.users) > 1:
            return []
        earlier = [_quantized(r, node, inner, to)]
        moved = _moved(r, node, source, earlier[0])
    elif source.target is aten.cat.default:
        tensors: list[Node] = arguments(source)["tensors"]
        made = {one: _quantized(r, node, one, to) for one in dict.fromkeys(tensors)}
        earlier = list(made.values())
        moved = _joined(r, node, source, [made[one] for one in tensors])
    elif source.target is aten.constant_pad_nd.default:
        earlier = [_quantized(r, node, source.args[0], to)]
        outside = to.byte(arguments(source)["value"])
        moved = _padded(r, node, source, earlier[0], outside)
    elif is_greatest(source):
        pool = source.all_input_nodes[0]
        earlier = [_quantized(r, node, pool.args[0], to)]
        moved = _pooled(r, node, source, earlier[0])
    else:
        return []
    r.replace(node, moved)
    r.erase(node)  # now: calls before it must not seem to have another user
    return earlier


def dequantize_late(r: Rewriter) -> None:
    """Dequantise after calls that only move elements."""
    for node in list(r.graph.nodes):
        if node.op == "call_function" and node.all_input_nodes:
            _behind(r, node, node.all_input_nodes[0])
    r.clean()


def _behind(r: Rewriter, node: Node, source: Node) -> None:
    """Let a call that moves dequantised values move their bytes, and dequantise its result."""
    if node.target is aten.split_with_sizes_copy.default and _is_dequantized(source):
        _split(r, node, source)
        return
    dequantized: Any = source
    if is_greatest(node) and _is_dequantized(source.args[0]):
        dequantized = source.args[0]
        moved = _pooled(r, node, node, dequantized.args[0])
    elif node.target is aten.cat.default:
        tensors: list[Any] = arguments(node)["tensors"]
        is_bytes = all(map(_is_dequantized, tensors))
        if not is_bytes or not all(dequantized.args[1].alike(one.args[1]) for one in tensors):
            return
        moved = _joined(r, node, node, [one.args[0] for one in tensors])
    elif not _is_dequantized(source):
        return
    elif node.target is aten.constant_pad_nd.default and not arguments(node)["value"]:
        moved = _padded(r, node, node, dequantized.args[0], dequantized.args[1].zero_point)
    elif node.target in MOVES:
        moved = _moved(r, node, node, dequantized.args[0])
    else:
        return
    r.replace(node, _dequantized(r, node, moved, dequantized.args[1]))


def _is_dequantized(node: Any) -> bool:
    return isinstance(node, Node) and node.target is calls.dequantize


def _quantized(r: Rewriter, before: Node, x: Any, to: Quantization) -> Node:
    return r.call(before, calls.quantize, x, to, shape=traced_shape(x), dtype=torch.uint8)


def _dequantized(r: Rewriter, before: Node, x: Any, quantization: Any) -> Node:
    return r.call(before, calls.dequantize, x, quantization, shape=traced_shape(x))


def _moved(r: Rewriter, before: Node, move: Node, x: Any) -> Node:
    args, kwargs = (x, *move.args[1:]), move.kwargs
    return _bytes(r, before, move, move.target, *args, **kwargs)


def _joined(r: Rewriter, before: Node, cat: Node, tensors: Sequence[Any]) -> Node:
    return _bytes(r, before, cat, cat.target, list(tensors), arguments(cat)["dim"])


def _padded(r: Rewriter, before: Node, pad: Node, x: Any, value: int) -> Node:
    return _bytes(r, before, pad, pad.target, x, arguments(pad)["pad"], value)


def _pooled(r: Rewriter, before: Node, greatest: Node, x: Any) -> Node:
    pool: Node = greatest.args[0]  # type: ignore[assignment]
    settings = calls.Pool(calls.Window(*window_of(arguments(pool))))
    return _bytes(r, before, greatest, calls.pool, x, settings)


def _bytes(r: Rewriter, before: Node, like: Node, target: Any, *args: Any, **kwargs: Any) -> Node:
    """A call on bytes in place of the call `like` on numbers."""
    shape = traced_shape(like)
    return r.call(before, target, *args, shape=shape, dtype=torch.uint8, replaced=[like], **kwargs)


def _split(r: Rewriter, split: Node, source: Node) -> None:
    """Replace a split of dequantised values by slices of bytes, each dequantised by itself."""
    args = arguments(split)
    sizes = args["split_sizes"]
    if not all(isinstance(size, int) for size in sizes):
        return
    for piece in list(split.users):
        start = sum(sizes[: piece.args[1]])
        end = start + sizes[piece.args[1]]
        slice_ = (source.args[0], args["dim"], start, end)
        part = _bytes(r, piece, piece, aten.slice_copy.Tensor, *slice_)
        r.replace(piece, _dequantized(r, piece, part, source.args[1]))
