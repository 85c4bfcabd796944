"""Compute at export what depends on no input.

A folded value is stored in the file, so folding must not make the file grow: a value larger than
what it is computed from stays an operator unless it is small. Weights that are stored quantised
stay so through the edge passes: a backend with integer kernels looks for the operator that
dequantises them. What no backend took is for `fold_dequantized`.
"""

from __future__ import annotations

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
    """The bytes of a tensor; more than is small if a size varies, none of what is no tensor."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.dtype.itemsize if _static(value) else _SMALL + 1
    return 0


def _static(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and all(isinstance(s, int) for s in value.shape)


def computes_constant(node: Node, known: set[Node]) -> bool:
    """Whether a node computes a tensor, always the same, from nodes that are all in `known`."""
    target = node.target
    if not isinstance(target, OpOverload) or not is_pure(node) or not _static(node.meta.get("val")):
        return False
    return all(n in known for n in node.all_input_nodes)


def constant_fold(constants: Constants) -> int:
    """Fold `constants.graph`; returns how many nodes went."""

    def is_foldable(node: Node, known: set[Node]) -> bool:
        return computes_constant(node, known) and not dequantizes(node)

    def is_too_large(node: Node) -> bool:
        inputs = sum(nbytes(n.meta.get("val")) for n in node.all_input_nodes)
        return nbytes(node.meta["val"]) > max(inputs, _SMALL)

    return fold(constants, is_foldable, is_too_large)


def fold(
    constants: Constants,
    is_foldable: Callable[[Node, set[Node]], bool],
    is_too_large: Callable[[Node], bool],
) -> int:
    """Put constants in place of nodes of `constants.graph`; returns how many nodes went.

    Args:
        constants: of the graph that is changed.
        is_foldable: whether to fold a node, given the nodes that are constants or will be.
        is_too_large: whether a foldable node's value is not to be stored.
    """
    known = constants.nodes()
    folded: list[Node] = []
    for node in constants.graph.nodes:
        if node.op == "call_function" and is_foldable(node, known):
            known.add(node)
            folded.append(node)
    for node in reversed(folded):  # what is too large stays, and its inputs become the border
        if any(u not in known for u in node.users) and is_too_large(node):
            known.discard(node)
    border = [n for n in folded if n in known and any(u not in known for u in n.users)]
    values: dict[Node, Any] = {}
    for node in border:
        value = _evaluate(constants, node, values)
        replace(node, constants.add(value, like=node))
    return remove_dead(constants.graph) + len(border)


def _evaluate(constants: Constants, node: Node, values: dict[Node, Any]) -> Any:
    """The value of a constant node; the stack of work is explicit, chains can be long."""
    given = constants.nodes()
    pending = [node]
    while pending:
        top = pending[-1]
        if top in values:
            pending.pop()
            continue
        missing = [n for n in top.all_input_nodes if n not in values]
        if top in given:
            values[top] = constants.value(top)
        elif missing:
            pending.extend(missing)
        else:
            args, kwargs = torch.fx.node.map_arg((top.args, top.kwargs), lambda n: values[n])
            # Strides of a value may be others than the graph's, and no view of it.
            target: Any = aten.reshape.default if top.target is aten.view.default else top.target
            with torch.no_grad():
                values[top] = target(*args, **kwargs)
    return values[node]
