"""Half precision: what a part computes in float16 or bfloat16 the engine computes in float32.

Values become float32 where they enter a part and are rounded where they leave it; conversions
between floating types in it are left out, so that what is between is as exact as in float32. One
to a half type whose result is converted again is no part of it: a model may want the rounding.
Large weights and tables are stored as they are given, other constants in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build import Builder
from rushlight.backends.cpu.graph import View
from rushlight.backends.cpu.operator_facts import REALS, Operator, is_replaced, val_of
from rushlight.backends.cpu.quantized_facts import MOVES
from rushlight.backends.cpu.rewrite import HALVES, Rewriter, shape_of
from rushlight.backends.cpu.sizes import shape_of as sizes_of_node

_CAST = torch.ops.dim_order_ops._to_dim_order_copy.default


def convert(x: Node, dtype: torch.dtype) -> Any:
    """The same numbers in another floating type, rounded to even. It is never run."""


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
        if node.target is _CAST:
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


def _convert(b: Builder, node: Node) -> View:
    given: Any = node.args
    x, dtype = given
    view = b.value(x)
    returned = any(user.op == "output" for user in node.users)
    order = range(view.meta.dim()) if returned else view.meta.order()
    out = b.new(sizes_of_node(node), order, dtype)
    b.copy(view, out)
    return out


def _cast_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    source: Any = node.args[0]
    before, after = val_of(source).dtype, val_of(node).dtype
    if before == after or before not in REALS or after not in REALS:
        return "the engine has no conversions but those of half types and float32"
    if list(source.meta["val"].dim_order()) != list(val_of(node).dim_order()):
        return "it also changes the order of dimensions"
    rounds = after in HALVES and _is_cast_again(node)
    return "it rounds what is converted to another type again" if rounds else None


def _is_cast_again(node: Node) -> bool:
    """Whether a value, perhaps moved, is converted once more."""
    waiting, seen = [node], {node}
    while waiting:
        for user in waiting.pop().users:
            if user.target is _CAST:
                return True
            if user.target in MOVES and user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


OPERATORS: dict[Any, Operator] = {
    convert: Operator(_convert),
    _CAST: Operator(is_replaced, _cast_why_not),
}
