"""The calls that XNNPACK takes, by operator."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.xnnpack import elementwise, images, movement, norms, products, slopes
from rushlight.backends.xnnpack.constants import XNN_MAX_TENSOR_DIMS
from rushlight.backends.xnnpack.graph import DATATYPES
from rushlight.backends.xnnpack.integers import IntegerValues, is_quantizing
from rushlight.backends.xnnpack.operator_facts import Arithmetic, Operator, used_results
from rushlight.partition.operators import SIZES
from rushlight.schema.cpu_engine import Limit

aten = torch.ops.aten

OPERATORS: dict[Any, Operator] = {
    **elementwise.OPERATORS,
    **products.OPERATORS,
    **images.OPERATORS,
    **movement.OPERATORS,
    **norms.OPERATORS,
    **slopes.OPERATORS,
}


def arithmetic_of(node: Node) -> Arithmetic | None:
    """How XNNPACK computes a call in integers; None if it does not."""
    known = OPERATORS.get(node.target)
    arithmetic = None if known is None else known.integers
    return (
        arithmetic if isinstance(arithmetic, Arithmetic) or arithmetic is None else arithmetic(node)
    )


def why_not(node: Node, is_constant: Callable[[Any], bool], integers: IntegerValues) -> str | None:
    """The reason why XNNPACK does not take a call; None if it does.

    Args:
        node: a call of the Edge dialect.
        is_constant: whether an argument is a constant of the program.
        integers: the values of its graph that are integers.
    """
    if is_quantizing(node) or node in integers.reasons:
        return integers.reasons.get(node)
    return why_not_call(node, is_constant)


def why_not_call(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    """The reason why XNNPACK does not take a call, in integers or not; None if it does."""
    if node.target in SIZES:
        return None
    if node.target not in OPERATORS:
        return f"XNNPACK has no {node.target}"
    if node.target is operator.getitem:
        return why_not_call(node.all_input_nodes[0], is_constant)
    return _why_not_inputs(node, is_constant) or (
        _why_not_results(node) or OPERATORS[node.target].why_not(node, is_constant)
    )


def _why_not_inputs(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    dtypes = set()
    for one in node.all_input_nodes:
        val = one.meta.get("val")
        if isinstance(val, torch.SymInt) or _is_condition(node, val):
            continue
        if not isinstance(val, torch.Tensor):
            return f"{one.name} is not a tensor"
        if val.dim() == 0 and not is_constant(one):
            return f"{one.name} has no dimensions"
        dtypes.add(val.dtype)
        reason = _why_not_value(one.name, val)
        if reason is not None:
            return reason
    return "its tensors are of different dtypes" if len(dtypes) > 1 else None


def _why_not_results(node: Node) -> str | None:
    val = node.meta["val"]
    used = [val]
    if not isinstance(val, torch.Tensor):  # indices are converted by the runtime
        used = [val[i] for i in sorted(used_results(node)) if val[i].dtype != torch.int64]
    for one in used:
        if one.dim() == 0:
            return "its result has no dimensions"
        if _is_condition(node, one):
            continue
        reason = _why_not_value("its result", one)
        if reason is not None:
            return reason
    return None


def _is_condition(node: Node, val: Any) -> bool:
    """Whether a value is the condition in a decomposed PReLU, which is not computed separately."""
    is_bool = isinstance(val, torch.Tensor) and val.dtype == torch.bool
    return is_bool and node.target in slopes.OPERATORS


def _why_not_value(name: str, val: torch.Tensor) -> str | None:
    if val.dtype not in DATATYPES:
        return f"{name} is {str(val.dtype).removeprefix('torch.')}; XNNPACK takes floats"
    if val.dim() > XNN_MAX_TENSOR_DIMS:
        return f"{name} has more than {XNN_MAX_TENSOR_DIMS} dimensions"
    if any(isinstance(size, int) and size == 0 for size in val.shape):
        return f"{name} has no elements"
    if math.prod(size for size in val.shape if isinstance(size, int)) > Limit.ELEMENTS:
        return f"{name} has more than {int(Limit.ELEMENTS)} elements"
    return None
