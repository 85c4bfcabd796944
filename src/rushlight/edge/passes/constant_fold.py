"""Compute at export the values that depend on no input.

A folded value is stored in the file, so folding must not make the file grow. A node is therefore
not folded if its value is not small and is larger than the constants that it is computed from, or
if it is a large part of a constant that is stored anyway, such as a split of a weight that is also
used whole. Quantised weights stay quantised through the edge passes, because a backend with integer
kernels looks for the operator that dequantises them. `fold_dequantized` handles those that no
backend takes.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.edge.constants import Constants
from rushlight.ir.quantized_values import dequantizes
from rushlight.ir.rewrite import is_pure, remove_dead, replace

_SMALL = 64 * 1024  # bytes that are always worth storing

aten = torch.ops.aten


def nbytes(value: Any) -> int:
    """The bytes of one or several tensors; more than `_SMALL` for dynamic sizes, 0 for numbers."""
    if isinstance(value, list | tuple):
        return sum(nbytes(one) for one in value)
    if isinstance(value, torch.Tensor):
        return value.numel() * value.dtype.itemsize if _static(value) else _SMALL + 1
    return 0


def _static(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and all(isinstance(s, int) for s in value.shape)


def _is_many(value: Any) -> bool:
    return isinstance(value, list | tuple)


def computes_constant(node: Node, known: set[Node]) -> bool:
    """Whether a node only computes static tensors, deterministically, from nodes in `known`."""
    if not isinstance(node.target, OpOverload) and node.target is not operator.getitem:
        return False
    value = node.meta.get("val")
    results = value if isinstance(value, list | tuple) else [value]
    if not is_pure(node) or not all(map(_static, results)):
        return False
    return all(n in known for n in node.all_input_nodes)


def constant_fold(constants: Constants) -> int:
    """Fold `constants.graph`; returns how many nodes were removed."""

    def is_foldable(node: Node, known: set[Node]) -> bool:
        return computes_constant(node, known) and not dequantizes(node)

    def is_too_large(node: Node) -> bool:
        inputs = sum(map(_size, node.all_input_nodes))
        return _size(node) > max(inputs, _SMALL)

    return fold(constants, is_foldable, is_too_large)


def fold(
    constants: Constants,
    is_foldable: Callable[[Node, set[Node]], bool],
    is_too_large: Callable[[Node], bool],
) -> int:
    """Replace nodes of `constants.graph` by constants; returns how many nodes were removed.

    Args:
        constants: the constants of the graph that is changed.
        is_foldable: whether to fold a node, given the nodes that are constants or will be.
        is_too_large: whether a foldable node's value is too large to store.
    """
    known = constants.nodes()
    origins = _Origins(known)
    folded: list[Node] = []
    for node in constants.graph.nodes:
        if node.op == "call_function" and is_foldable(node, known):
            known.add(node)
            folded.append(node)
            origins.add(node)
    _leave(folded, known, is_too_large)
    _leave(folded, known, origins.stored_twice(_border(folded, known), known))
    border = _border(folded, known)
    values: dict[Node, Any] = {}
    stored: dict[Any, Node] = {}
    for node in border:
        value = _evaluate(constants, node, values)
        # Equal views of one weight, as in every iteration of a recurrent layer, are one constant.
        key = (value.data_ptr(), value.dtype, value.shape, value.stride())
        if key not in stored:
            stored[key] = constants.add(value, like=node)
        replace(node, stored[key])
    return remove_dead(constants.graph) + len(border)


def _border(folded: list[Node], known: set[Node]) -> list[Node]:
    """The folded nodes whose values are used by nodes that are not folded."""
    return [n for n in folded if n in known and any(u not in known for u in n.users)]


def _leave(folded: list[Node], known: set[Node], is_too_large: Callable[[Node], bool]) -> None:
    """Take nodes whose values would be stored and are too large out of `known`.

    Their inputs become the border.
    """
    for node in reversed(folded):
        if any(u not in known for u in node.users) and (
            _is_many(node.meta["val"]) or is_too_large(node)
        ):
            known.discard(node)


class _Origins:
    """The large constants that each node is computed from.

    Constants that one node is computed from form a group (a union-find structure).
    """

    def __init__(self, constants: set[Node]) -> None:
        self._large = [node for node in constants if _size(node) > _SMALL]
        self._group = {node: node for node in self._large}  # a node's parent towards its leader
        self._largest = {node: _size(node) for node in self._large}

    def add(self, node: Node) -> None:
        """Add a node that is computed from constants and from nodes added before."""
        leaders = [self._leader(n) for n in node.all_input_nodes if n in self._group]
        for leader in leaders:
            self._group[leader] = self._group[node] = leaders[0]
        if leaders:
            self._largest[node] = max(self._largest.get(n, 0) for n in node.all_input_nodes)

    def _leader(self, node: Node) -> Node:
        while self._group[node] is not node:
            self._group[node] = self._group[self._group[node]]
            node = self._group[node]
        return node

    def stored_twice(self, border: list[Node], known: set[Node]) -> Callable[[Node], bool]:
        """A predicate: whether a node is large and its group's parts would be stored twice.

        That is so if a constant of the group is in the file as well, or if the parts together have
        more bytes than the group's constants. A value as large as the constant that it is computed
        from, such as its transpose, is not a part.
        """
        stays = {self._leader(n) for n in self._large if any(u not in known for u in n.users)}
        room: dict[Node, int] = defaultdict(int)
        for node in self._large:
            room[self._leader(node)] += _size(node)
        parts = set()
        for node in filter(self._is_large, border):
            leader = self._leader(node)
            if _size(node) < self._largest[node]:
                parts.add(leader)
                room[leader] -= _size(node)
            else:
                stays.add(leader)
        twice = {leader for leader in parts if leader in stays or room[leader] < 0}
        return lambda node: self._is_large(node) and self._leader(node) in twice

    def _is_large(self, node: Node) -> bool:
        return node in self._group and _size(node) > _SMALL


def _size(node: Node) -> int:
    return nbytes(node.meta["val"])


def _evaluate(constants: Constants, node: Node, values: dict[Node, Any]) -> Any:
    """The value of a constant node; an explicit stack, because long chains would recurse deeply."""
    constant_nodes = constants.nodes()
    pending = [node]
    while pending:
        top = pending[-1]
        if top in values:
            pending.pop()
            continue
        missing = [n for n in top.all_input_nodes if n not in values]
        if top in constant_nodes:
            values[top] = constants.value(top)
        elif missing:
            pending.extend(missing)
        else:
            args, kwargs = torch.fx.node.map_arg((top.args, top.kwargs), lambda n: values[n])
            # The value's strides may differ from the graph's and then not allow the view.
            target: Any = aten.reshape.default if top.target is aten.view.default else top.target
            with torch.no_grad():
                values[top] = target(*args, **kwargs)
    return values[node]
