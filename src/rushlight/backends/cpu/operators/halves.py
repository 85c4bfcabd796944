"""Conversions between floating types, where half-precision values enter or leave a part.

`patterns/halves.py` inserts them. A conversion to half precision whose result is converted again
is not taken: a model may want the rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.rewrite import HALVES
from rushlight.backends.cpu.graph.sizes import shape_of
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.integers.facts import MOVES
from rushlight.backends.cpu.operators.facts import REALS, is_replaced
from rushlight.partition.operators import Operator, val_of

CAST = torch.ops.dim_order_ops._to_dim_order_copy.default


def convert(x: Node, dtype: torch.dtype) -> Any:
    """The same numbers in another floating type, rounded to even. It is never run."""


def _convert(b: Builder, node: Node) -> View:
    args: Any = node.args
    x, dtype = args
    view = b.value(x)
    returned = any(user.op == "output" for user in node.users)
    order = range(view.meta.dim()) if returned else view.meta.order()
    out = b.new(shape_of(node), order, dtype)
    b.copy(view, out)
    return out


def _cast_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    source: Any = node.args[0]
    before, after = val_of(source).dtype, val_of(node).dtype
    if before == after or before not in REALS or after not in REALS:
        return "the engine converts only between half types and float32"
    if list(source.meta["val"].dim_order()) != list(val_of(node).dim_order()):
        return "it also changes the order of dimensions"
    rounds = after in HALVES and _is_cast_again(node)
    return "it rounds what is converted to another type again" if rounds else None


def _is_cast_again(node: Node) -> bool:
    """Whether a value, perhaps moved, is converted once more."""
    waiting, seen = [node], {node}
    while waiting:
        for user in waiting.pop().users:
            if user.target is CAST:
                return True
            if user.target in MOVES and user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


OPERATORS: dict[Any, Operator[Builder]] = {
    convert: Operator(_convert),
    CAST: Operator(is_replaced, _cast_why_not),
}
