"""PReLU, recognised in its decomposed form: where(x > 0, x, weight * x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.graph import Value
from rushlight.backends.xnnpack.operator_facts import Operator
from rushlight.partition.operators import val_of
from rushlight.schema import xnnpack as fb

aten = torch.ops.aten

IsConstant = Callable[[Any], bool]


def _slopes(where: Node, is_constant: IsConstant) -> Node | None:
    """The weight, if a call is a decomposed PReLU; else None."""
    condition, source, product = where.args
    if not isinstance(condition, Node) or not isinstance(product, Node):
        return None
    is_sign = condition.target is aten.gt.Scalar and condition.args == (source, 0)
    if not is_sign or product.target is not aten.mul.Tensor or source not in product.args:
        return None
    weight = product.args[1 if product.args[0] is source else 0]
    return weight if isinstance(weight, Node) and is_constant(weight) else None


def _channel(where: Node, weight: torch.Tensor) -> int | None:
    """The dimension along which the weight varies; None if it varies along several."""
    shape = val_of(where).shape
    along = [d for d, size in enumerate(weight.shape, len(shape) - weight.dim()) if size != 1]
    if any(d < 0 or not isinstance(shape[d], int) for d in along) or len(along) > 1:
        return None
    return along[0] if along else len(shape) - 1


def _where_why_not(node: Node, is_constant: IsConstant) -> str | None:
    weight = _slopes(node, is_constant)
    if weight is None or _channel(node, val_of(weight)) is None:
        return "XNNPACK chooses between tensors in a PReLU only, whose weight is a constant"
    return None


def _sign_why_not(node: Node, is_constant: IsConstant) -> str | None:
    if all(
        user.target is aten.where.self and _where_why_not(user, is_constant) is None
        for user in node.users
    ):
        return None
    return "XNNPACK compares tensors in a PReLU only"


def _prelu(b: Builder, node: Node) -> Value:
    """One PReLU node; the product before it is then unused, and dropped."""
    weight = _slopes(node, lambda n: b.data(n) is not None)
    data = b.data(weight)
    assert data is not None
    value = b.value(node.args[1])
    channel = _channel(node, data)
    assert channel is not None
    order = value.order
    if data.numel() > 1:  # XNNPACK's slopes are along the dimension that is stored last
        order = (*(d for d in order if d != channel), channel)
    source = b.in_order(value, order).stored
    slopes = b.constant(data.reshape(-1))
    stored = b.emit_one(
        *(fb.PReLU(), source.dims, source.elements), input1_id=source, input2_id=slopes
    )
    return Value(stored, value.shape, order)


OPERATORS: dict[Any, Operator] = {
    aten.gt.Scalar: Operator(lambda b, node: None, _sign_why_not, moves=True),
    aten.where.self: Operator(_prelu, _where_why_not),
}
