"""Compute at export what depends on no input.

A folded value is stored in the file, so folding must not make the file grow: a value larger than
the constants it is made of stays an operator unless it is small. Weights that are stored quantised
stay so: a backend with integer kernels looks for the operator that dequantises them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.edge.constants import Constants
from rushlight.ir.rewrite import is_pure, remove_dead, replace

_SMALL = 64 * 1024  # bytes that are always worth storing

aten = torch.ops.aten


def _nbytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.dtype.itemsize if _static(value) else _SMALL + 1
    return 0


def _static(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and all(isinstance(s, int) for s in value.shape)


def _foldable(node: Node, known: set[Node]) -> bool:
    target = node.target
    if not isinstance(target, OpOverload) or not is_pure(node) or not _static(node.meta.get("val")):
        return False
    if target.name().startswith("quantized_decomposed::dequantize"):
        return False
    return all(n in known for n in node.all_input_nodes)


def constant_fold(constants: Constants) -> int:
    """Fold `constants.graph`; returns how many nodes went."""
    known = constants.nodes()
    folded: list[Node] = []
    for node in constants.graph.nodes:
        if node.op == "call_function" and _foldable(node, known):
            known.add(node)
            folded.append(node)
    for node in reversed(folded):  # what is too large stays, and its inputs become the border
        used_outside = any(u not in known for u in node.users)
        inputs = sum(_nbytes(n.meta.get("val")) for n in node.all_input_nodes)
        if used_outside and _nbytes(node.meta["val"]) > max(inputs, _SMALL):
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
