"""Elementwise calls on a concatenation are done on each of its pieces, before these are joined.

In rotary embedding `x * cos + cat(-x2, x1) * sin` becomes `cat(x1 * cos1 - x2 * sin1, x2 * cos2 +
x1 * sin2)`, which is one pass that reads and writes each element once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, alike, only_user, traced_shape
from rushlight.backends.cpu.tiles.clusters import is_anchor_target
from rushlight.backends.cpu.tiles.terms import TERMS

aten = torch.ops.aten
_MAX_PIECES = 4


@dataclass(frozen=True)
class _Pieces:
    """Values that together make up another one, each as a slice of its dimension `dim`.

    Attributes:
        nodes: the pieces, which have the sizes of their slices.
        dim: along which they are joined or interleaved.
        slices: start, end and step of each.
    """

    nodes: list[Node]
    dim: int
    slices: list[tuple[int, int, int]]


def split_chains(r: Rewriter) -> None:
    """Move elementwise calls that follow a concatenation before it."""
    for node in list(r.graph.find_nodes(op="call_function", target=aten.cat.default)):
        _flatten(node)
    for node in list(r.graph.find_nodes(op="call_function", target=aten.cat.default)):
        joined, pieces = node, _pieces(node)
        user = only_user(node)
        if user is not None and user.target is aten.view_copy.default:
            joined, pieces = user, _interleaved(node, user)
        chain = _chain(joined)
        if pieces is not None and chain:
            _split(r, joined, pieces, chain)
    r.clean()
    for node in list(r.graph.find_nodes(op="call_function", target=aten.cat.default)):
        _flatten(node)
    r.clean()


def _dim(cat: Node) -> int:
    dim: Any = cat.args[1] if len(cat.args) > 1 else 0
    return int(dim) % len(traced_shape(cat))


def _flatten(cat: Node) -> None:
    """Merge nested concatenations along the same dimension into one."""
    nodes: list[Node] = []
    for piece in cat.args[0]:  # type: ignore[union-attr]
        assert isinstance(piece, Node)
        is_cat = piece.target is aten.cat.default and only_user(piece) is cat
        is_same = is_cat and _dim(piece) == _dim(cat)
        nodes += piece.args[0] if is_same else [piece]  # type: ignore[arg-type]
    cat.args = (nodes, _dim(cat))


def _pieces(cat: Node) -> _Pieces | None:
    nodes, dim = list(cat.args[0]), _dim(cat)  # type: ignore[arg-type]
    sizes = [
        traced_shape(node)[dim]
        for node in nodes
        if len(traced_shape(node)) == len(traced_shape(cat))
    ]
    if len(nodes) > _MAX_PIECES or len(sizes) != len(nodes):
        return None
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return _Pieces(
        nodes,
        dim,
        [(end - size, end, 1) for end, size in zip(ends, sizes, strict=True)],
    )


def _interleaved(cat: Node, view: Node) -> _Pieces | None:
    """Interleaved pieces: each is [..., n, 1], and a view makes one dimension of the last two."""
    shape, flat = traced_shape(cat), traced_shape(view)
    nodes: list[Node] = []
    for piece in cat.args[0]:  # type: ignore[union-attr]
        assert isinstance(piece, Node)
        source = piece.all_input_nodes[0] if piece.target is aten.view_copy.default else None
        if source is None or not alike(traced_shape(piece), [*shape[:-1], 1]):
            return None
        if not alike(traced_shape(source), shape[:-1]):
            return None
        nodes.append(source)
    count = len(nodes)
    if _dim(cat) != len(shape) - 1 or not alike(flat, [*shape[:-2], shape[-2] * count]):
        return None
    if count > _MAX_PIECES or not isinstance(flat[-1], int):
        return None
    return _Pieces(nodes, len(flat) - 1, [(i, flat[-1], count) for i in range(count)])


def _chain(joined: Node) -> list[Node]:
    """The following elementwise calls of the same size, and those that only they use, in order."""
    last, node = joined, only_user(joined)
    while (
        node is not None
        and node.target in TERMS
        and alike(traced_shape(node), traced_shape(joined))
    ):
        last, node = node, only_user(node)
    chain: list[Node] = []  # backwards
    waiting = [last] if last is not joined else []
    while waiting:
        node = waiting.pop()
        chain.append(node)
        for arg in node.all_input_nodes:
            fits = arg.target in TERMS and alike(traced_shape(arg), traced_shape(joined))
            if fits and only_user(arg) is node:
                waiting.append(arg)
    operands = {arg for node in chain for arg in node.all_input_nodes}
    return [] if any(_is_product(arg) for arg in operands) else chain[::-1]


def _is_product(node: Node) -> bool:
    """Whether elementwise calls had better be the epilogue of this value's product."""
    while node.target is aten.view_copy.default:
        node = cast("Node", node.args[0])
    return is_anchor_target(node.target)


def _split(r: Rewriter, joined: Node, pieces: _Pieces, chain: list[Node]) -> None:
    results = []
    last, size = chain[-1], traced_shape(joined)[pieces.dim]
    for piece, where in zip(pieces.nodes, pieces.slices, strict=True):
        known: dict[Node, Node] = {joined: piece}

        def part_of(arg: Any, known: dict[Node, Node] = known, where: Any = where) -> Any:
            if not isinstance(arg, Node):
                return arg
            if arg not in known:
                known[arg] = _slice(
                    r, last, arg, pieces.dim - len(traced_shape(joined)), size, where
                )
            return known[arg]

        for call in chain:
            args = torch.fx.node.map_arg(call.args, part_of)
            kwargs = torch.fx.node.map_arg(call.kwargs, part_of)
            val = call.meta["val"]
            known[call] = r.call(
                last,
                call.target,
                *args,
                shape=traced_shape(piece),
                dtype=val.dtype,
                replaced=[call],
                **kwargs,
            )
        results.append(known[last])
    shape, dtype = traced_shape(last), last.meta["val"].dtype
    if pieces.slices[0][2] == 1:
        new = r.call(last, aten.cat.default, results, pieces.dim, shape=shape, dtype=dtype)
    else:
        ones = [r.view(last, n, [*traced_shape(n), 1]) for n in results]
        wide = [*traced_shape(results[0]), len(results)]
        interleaved = r.call(last, aten.cat.default, ones, pieces.dim + 1, shape=wide, dtype=dtype)
        new = r.view(last, interleaved, shape)
    r.replace(last, new)


def _slice(
    r: Rewriter, before: Node, node: Node, dim: int, size: int, where: tuple[int, int, int]
) -> Node:
    """The part of an operand for one piece; all of it if it is broadcast along that dimension."""
    shape = traced_shape(node)
    if len(shape) < -dim or size == 1 or not alike([shape[dim]], [size]):
        return node
    start, end, interval = where
    shape[dim] = (end - start + interval - 1) // interval
    dtype, at = node.meta["val"].dtype, len(shape) + dim
    return r.call(before, aten.slice_copy.Tensor, node, at, *where, shape=shape, dtype=dtype)
