"""Estimates the cost of a node from its arithmetic and from the bytes that it moves.

The formulas for arithmetic are torch's own (`torch.utils.flop_counter`); `rates.py` has the rates.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._ops import OpOverload
from torch.fx import Node
from torch.utils.flop_counter import flop_registry

from rushlight.ir.rates import estimated_cost
from rushlight.ir.rewrite import example

# Operators that move no bytes: the runtime shares the memory or reads only the sizes.
_FREE = frozenset(
    """
    aten::view_copy aten::unsqueeze_copy aten::squeeze_copy aten::sym_size aten::sym_numel
    """.split()
)


def cost_of(node: Node) -> float:
    """The estimated microseconds of one call in an Edge graph, at the traced sizes."""
    target = node.target
    if node.op != "call_function" or target is operator.getitem:
        return 0.0
    if not isinstance(target, OpOverload) or target._schema.name in _FREE:
        return 0.0
    values = [n.meta.get("val") for n in node.all_input_nodes]
    tensors = [t for t in pytree.tree_leaves([values, node.meta.get("val")]) if _is_tensor(t)]
    moved: int = sum(_numel(t) * t.dtype.itemsize for t in tensors)
    return estimated_cost(_flops(node, target), moved)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _flops(node: Node, target: OpOverload) -> float:
    """The arithmetic operations; one per element of the result where torch has no formula."""
    value = node.meta.get("val")
    results = [t for t in pytree.tree_leaves(value) if _is_tensor(t)]
    elements = float(sum(_numel(t) for t in results))
    if target is torch.ops.aten.linear.default:
        weight: Any = node.args[1]
        columns: int = _size(weight.meta["val"].shape[-1])
        return 2.0 * elements * columns
    formula = flop_registry.get(target._overloadpacket)
    if formula is None:
        return elements
    args, kwargs = pytree.tree_map(_traced, example((node.args, node.kwargs)))
    return float(formula(*args, **kwargs, out_val=_traced(value)))


def _traced(value: Any) -> Any:
    """The value with traced sizes in place of symbols."""
    if isinstance(value, torch.Tensor):
        return torch.empty([_size(s) for s in value.shape], dtype=value.dtype, device="meta")
    return _size(value) if isinstance(value, torch.SymInt) else value


def _numel(tensor: torch.Tensor) -> int:
    return math.prod(_size(size) for size in tensor.shape)


def _size(size: int | torch.SymInt) -> int:
    """A size as it was traced; 1 if it is known only at run time."""
    if isinstance(size, int):
        return size
    return int(size.node.hint) if size.node.has_hint() else 1
