"""Data movement: permutations only change the order of a value, other operators become nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.graph import (
    DATATYPES,
    Elements,
    Value,
    dynamic_sizes,
    keys_of,
)
from rushlight.backends.xnnpack.operator_facts import (
    SEVERAL_DYNAMIC,
    Arithmetic,
    Operator,
    arguments,
)
from rushlight.ir.custom_ops.dim_order import clone_dim_order, to_dim_order_copy
from rushlight.ir.spec import dim_order_of
from rushlight.partition.operators import beyond_window, val_of
from rushlight.schema import xnnpack as fb
from rushlight.schema.cpu_engine import Limit

aten = torch.ops.aten

_MAX_INPUTS = 5
_CONCATENATE: dict[
    int, type[fb.Concatenate2 | fb.Concatenate3 | fb.Concatenate4 | fb.Concatenate5]
] = {
    2: fb.Concatenate2,
    3: fb.Concatenate3,
    4: fb.Concatenate4,
    5: fb.Concatenate5,
}


def _same(b: Builder, node: Node) -> Value:
    return b.value(node.args[0])


def _view(b: Builder, node: Node) -> Value:
    return b.viewed(b.value(node.args[0]), tuple(val_of(node).shape))


def _view_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if dynamic_sizes(val_of(node).shape) > 1:
        return SEVERAL_DYNAMIC
    return None


def _expand_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    before, after = val_of(node.args[0]).shape, val_of(node).shape
    added = len(after) - len(before)
    if keys_of([1] * added + list(before)) == keys_of(after):
        return _view_why_not(node, is_constant)
    return "it repeats elements, for which XNNPACK has no node"


def _permute(b: Builder, node: Node) -> Value:
    return b.value(node.args[0]).permuted(node.args[1])  # type: ignore[arg-type]


def _transpose(b: Builder, node: Node) -> Value:
    value = b.value(node.args[0])
    dims = list(range(value.rank))
    one, other = (int(d) % value.rank for d in node.args[1:3])  # type: ignore[arg-type]
    dims[one], dims[other] = other, one
    return value.permuted(dims)


def _order_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    order = dim_order_of(val_of(node))
    if list(order) != sorted(order) and any(user.op == "output" for user in node.users):
        return f"it returns its result in the dim order {list(order)}, and XNNPACK's are row-major"
    return None


def _converted(b: Builder, node: Node) -> Value:
    value, datatype = b.value(node.args[0]), DATATYPES[val_of(node).dtype]
    if node in b.integers.values or datatype == value.stored.datatype:
        return value
    return b.converted(value, Elements(datatype))


# --- parts --------------------------------------------------------------------------------------


def _part(b: Builder, value: Value, dim: int, start: int, size: int) -> Value:
    """`size` neighbours in one dimension, and all elements in the others (dynamic ones as 0)."""
    at = value.order.index(dim)
    if value.shape[dim] == size:
        return value
    offsets = [0] * value.rank
    offsets[at] = start
    dims = list(value.stored.dims)
    dims[at] = size
    sizes = [d if isinstance(d, int) else 0 for d in dims]
    operation = fb.StaticSlice(value.rank, offsets, sizes)
    stored = b.emit_one(operation, dims, value.stored.elements, input_id=value.stored)
    shape = [*value.shape[:dim], size, *value.shape[dim + 1 :]]
    return Value(stored, tuple(shape), value.order)


def _part_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    source, dim = val_of(node.args[0]), int(arguments(node)["dim"])
    if dynamic_sizes([source.shape[dim]]):
        return "it cuts a size that is dynamic, and XNNPACK's slices have fixed offsets"
    return None


def _slice(b: Builder, node: Node) -> Value:
    args = arguments(node)
    value = b.value(args["self"])
    dim = int(args["dim"]) % value.rank
    start, _, _ = slice(args["start"], args["end"]).indices(int(value.shape[dim]))
    return _part(b, value, dim, start, int(val_of(node).shape[dim]))


def _select_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    return _part_why_not(node, is_constant) or _view_why_not(node, is_constant)


def _slice_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if arguments(node)["step"] != 1:
        return "its step is not 1, and XNNPACK's slices take each element"
    return _part_why_not(node, is_constant)


def _select(b: Builder, node: Node) -> Value:
    value = b.value(node.args[0])
    dim = int(node.args[1]) % value.rank  # type: ignore[arg-type]
    index = int(node.args[2]) % int(value.shape[dim])  # type: ignore[arg-type]
    return b.viewed(_part(b, value, dim, index, 1), tuple(val_of(node).shape))


def _split(b: Builder, node: Node) -> list[Value]:
    args = arguments(node)
    value = b.value(args["self"])
    dim, start, parts = int(args["dim"]) % value.rank, 0, []
    for size in args["split_sizes"]:
        parts.append(_part(b, value, dim, start, size))
        start += size
    return parts


def _split_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if 0 in arguments(node)["split_sizes"]:
        return "one of its results has no elements"
    return _part_why_not(node, is_constant)


def _getitem(b: Builder, node: Node) -> Any:
    values = b.results(node.args[0])  # type: ignore[arg-type]
    index = int(node.args[1])  # type: ignore[arg-type]
    return values[index] if index < len(values) else None  # None is never used


# --- joining and padding ------------------------------------------------------------------------


def _cat(b: Builder, node: Node) -> Value:
    args = arguments(node)
    values = [b.value(n) for n in args["tensors"]]
    shape = tuple(val_of(node).shape)
    rank = len(shape)
    orders = dict.fromkeys(v.order for v in values if v.stored.data is None)
    order = min(orders, key=lambda o: sum(not b.has_order(v, o) for v in values))
    dim = int(args["dim"]) % rank
    parts = [(b.in_order(v, order).stored, v.shape[dim]) for v in values]
    at = order.index(dim)
    while len(parts) > 1:
        joined = []
        for i in range(0, len(parts), _MAX_INPUTS):
            group = parts[i : i + _MAX_INPUTS]
            joined.append(group[0] if len(group) == 1 else _joined(b, group, at))
        parts = joined
    return Value(parts[0][0], shape, order)


def _joined(b: Builder, parts: Sequence[tuple[Any, Any]], at: int) -> tuple[Any, Any]:
    first, _ = parts[0]
    size = sum(size for _, size in parts)
    dims = [*first.dims[:at], size, *first.dims[at + 1 :]]
    inputs = {f"input{i}_id": stored for i, (stored, _) in enumerate(parts, 1)}
    operation = _CONCATENATE[len(parts)](axis=at)
    return b.emit_one(operation, dims, first.elements, **inputs), size


def _pad(b: Builder, node: Node) -> Value:
    args = arguments(node)
    value, shape = b.value(args["self"]), tuple(val_of(node).shape)
    before, after = [0] * value.rank, [0] * value.rank
    for i, padding in enumerate(args["pad"]):
        (after if i % 2 else before)[value.order.index(value.rank - 1 - i // 2)] = padding
    operation = fb.StaticConstantPad(before, after, float(args["value"]))
    dims = [shape[d] for d in value.order]
    stored = b.emit_one(operation, dims, value.stored.elements, input_id=value.stored)
    return Value(stored, shape, value.order)


def _pad_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    pad = arguments(node)["pad"]
    if any(not isinstance(p, int) for p in pad):
        return "its padding depends on dynamic sizes, and XNNPACK's is fixed"
    return (
        "its padding is negative" if min(pad, default=0) < 0 else beyond_window(Limit.WINDOW, *pad)
    )


KEEPS = Arithmetic.KEEPS


def _cast_arithmetic(node: Node) -> Arithmetic | None:
    return KEEPS if val_of(node).dtype == val_of(node.args[0]).dtype else None


def _pad_arithmetic(node: Node) -> Arithmetic | None:
    """Padding with zero keeps integers, because every scale has an integer for zero."""
    return KEEPS if arguments(node)["value"] == 0 else None


OPERATORS: dict[Any, Operator] = {
    **{
        target: Operator(_same, _order_why_not, moves=True, integers=KEEPS)
        for target in (aten.alias_copy.default, clone_dim_order)
    },
    **{
        target: Operator(_view, _view_why_not, moves=True, integers=KEEPS)
        for target in (
            aten.squeeze_copy.dim,
            aten.squeeze_copy.dims,
            aten.unsqueeze_copy.default,
            aten.view_copy.default,
        )
    },
    aten.expand_copy.default: Operator(_view, _expand_why_not, moves=True, integers=KEEPS),
    aten.permute_copy.default: Operator(_permute, moves=True, integers=KEEPS),
    aten.transpose_copy.int: Operator(_transpose, moves=True, integers=KEEPS),
    to_dim_order_copy: Operator(_converted, _order_why_not, moves=True, integers=_cast_arithmetic),
    aten.slice_copy.Tensor: Operator(_slice, _slice_why_not, integers=KEEPS),
    aten.select_copy.int: Operator(_select, _select_why_not, moves=True, integers=KEEPS),
    aten.split_with_sizes_copy.default: Operator(
        _split, _split_why_not, moves=True, integers=KEEPS
    ),
    operator.getitem: Operator(_getitem, moves=True, integers=KEEPS),
    aten.cat.default: Operator(_cat, integers=KEEPS),
    aten.constant_pad_nd.default: Operator(_pad, _pad_why_not, integers=_pad_arithmetic),
}
