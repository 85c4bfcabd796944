"""Half precision: what a part computes in float16 or bfloat16 the engine computes in float32.

Values become float32 where they enter a part and are rounded where they leave it; conversions
between floating types in it are left out, so that what is between is as exact as in float32.
Large weights and tables are stored as they are given, other constants in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import HALVES, Rewriter, shape_of
from rushlight.backends.cpu.operators.halves import CAST, convert
from rushlight.partition.operators import val_of


def widen(r: Rewriter) -> None:
    """Let the calls of a graph compute in float32 what they compute in halves."""
    if not any(_is_half(node) for node in r.graph.nodes):
        return
    calls = [node for node in r.graph.nodes if node.op == "call_function"]
    output = r.graph.output_node()
    for node in list(r.graph.find_nodes(op="placeholder")):
        if r.data(node) is not None:
            node.meta["val"] = _wide(r, node.meta["val"])
        elif _is_half(node):
            users = list(node.users)
            new = r.call(calls[0], convert, node, torch.float32, shape=shape_of(node))
            new.meta["val"] = _wide(r, node.meta["val"])
            for user in users:
                user.replace_input_with(node, new)
    returned: Any = output.args[0]
    output.update_arg(0, tuple(_narrowed(r, node, output) for node in returned))
    for node in calls:
        node.meta["val"] = _wide(r, node.meta["val"])
        if node.target is CAST:
            r.replace(node, node.args[0])
    r.clean()


def _narrowed(r: Rewriter, node: Node, output: Node) -> Node:
    """What is returned, in the type that it is to have."""
    if not _is_half(node):
        return node
    dtype = val_of(node).dtype
    return r.call(output, convert, node, dtype, shape=shape_of(node), dtype=dtype, of=[node])


def _is_half(node: Node) -> bool:
    vals = node.meta.get("val")
    vals = vals if isinstance(vals, list | tuple) else [vals]
    return any(isinstance(val, torch.Tensor) and val.dtype in HALVES for val in vals)


def _wide(r: Rewriter, val: Any) -> Any:
    if isinstance(val, list | tuple):
        return type(val)(_wide(r, one) for one in val)
    if not isinstance(val, torch.Tensor) or val.dtype not in HALVES:
        return val
    return r.fake(val.shape, val.stride(), torch.float32)
