"""Rewrites of a captured graph that let more of it be integers, before it is annotated."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

aten = torch.ops.aten

_PADDING_AT = {aten.conv1d.default: 4, aten.conv2d.default: 4}


def prepare_graph(model: GraphModule) -> GraphModule:
    """Fold zero paddings into the convolutions behind them; `model` is changed."""
    for node in list(model.graph.nodes):
        if node.target in _PADDING_AT:
            _fold_padding(node)
    model.graph.eliminate_dead_code()
    model.recompile()
    return model


def _fold_padding(node: Node) -> None:
    """Take a symmetric zero padding of the input, which need not be observed then."""
    source: Any = node.args[0]
    if source.target not in (aten.pad.default, aten.constant_pad_nd.default):
        return
    pads = _zero_pads(source)
    if pads is None:
        return
    spatial = node.meta["val"].dim() - 2
    pairs = [tuple(pads[i : i + 2]) for i in range(0, len(pads), 2)]
    symmetric = all(isinstance(a, int) and a == b and a >= 0 for a, b in pairs)
    if len(pairs) > spatial or not symmetric:
        return
    extra = [0] * (spatial - len(pairs)) + [a for a, _ in reversed(pairs)]
    args: list[Any] = list(node.args) + [None, [1], [0]][len(node.args) - 2 :]
    own = args[4] if len(args[4]) == spatial else args[4] * spatial
    args[4] = [p + e for p, e in zip(own, extra, strict=True)]
    args[0] = source.args[0]
    node.args = tuple(args)


def _zero_pads(node: Node) -> list[Any] | None:
    """The pads of a padding with zeros; None for another."""
    args = [*node.args, *node.kwargs.values()]
    if node.target is aten.pad.default:
        if len(args) > 2 and args[2] != "constant":
            return None
        value = args[3] if len(args) > 3 else 0
    else:
        value = args[2] if len(args) > 2 else 0
    pads: Any = args[1]
    return list(pads) if value in (None, 0) else None
