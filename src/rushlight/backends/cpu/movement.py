"""Data movement: most of it is another view of the same memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build import Builder
from rushlight.backends.cpu.graph import View, order_of
from rushlight.backends.cpu.operator_facts import Operator, arguments, val_of
from rushlight.schema import cpu_engine as fb

aten = torch.ops.aten


def _embedding(b: Builder, node: Node) -> View:
    args = arguments(node)
    weight, indices = args["weight"], b.dense(b.value(args["indices"]))
    out = b.new(val_of(node).shape, dtype=val_of(node).dtype)
    data = b.data(weight)
    layers = [u for u in weight.users if u.target is aten.linear.default]
    if data is not None and any(u.args[1] is weight for u in layers):
        # The output layer has these weights, too: they are stored once, as it reads them.
        table, columns = b.linear_weight(weight), len(data)
    else:
        table, columns = b.dense(b.value(weight)), 0
    b.emit(fb.Gather(columns), [table, indices], [out])
    return out


def _embedding_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    return (
        None
        if val_of(arguments(node)["indices"]).dtype == torch.int64
        else "its indices are no int64"
    )


def _cat(b: Builder, node: Node) -> View:
    args = arguments(node)
    views = [b.value(n) for n in args["tensors"]]
    views = [v for v in views if v.meta.numel() > 0 or v.meta.dim() == val_of(node).dim()]
    orders = [order_of(v.meta) for v in views]
    order = orders[0] if all(o == orders[0] for o in orders) else range(val_of(node).dim())
    out = b.new(val_of(node).shape, order, val_of(node).dtype)
    at = 0
    for view in views:
        size = view.shape[args["dim"]]
        b.copy(view, out.moved(out.meta.narrow(args["dim"], at, size)))
        at += size
    return out


def _viewed(change: Callable[..., Any]) -> Callable[[Builder, Node], View]:
    """An operator that is a view of its first argument, if it lies so that there is one."""

    def translate(b: Builder, node: Node) -> View:
        source, *rest = node.args
        view: View = b.value(source)  # type: ignore[arg-type]
        try:
            return view.moved(change(view.meta, *rest, **node.kwargs))
        except RuntimeError:
            view = b.dense(view)
            return view.moved(change(view.meta, *rest, **node.kwargs))

    return translate


def _as_strided(b: Builder, node: Node) -> View:
    args = arguments(node)
    source = b.in_order(b.value(args["self"]), order_of(val_of(args["self"])))
    offset = source.meta.storage_offset() + (args["storage_offset"] or 0)
    return source.moved(source.meta.as_strided(args["size"], args["stride"], offset))


def _split(b: Builder, node: Node) -> list[View]:
    source, sizes, *dim = node.args
    view = b.value(source)  # type: ignore[arg-type]
    return [view.moved(m) for m in view.meta.split(list(sizes), *dim)]  # type: ignore[arg-type]


def _getitem(b: Builder, node: Node) -> Any:
    source, index = node.args
    values = b.value(source)  # type: ignore[arg-type]
    return values[index] if index < len(values) else None  # type: ignore[operator]


def _slice(m: torch.Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return torch.ops.aten.slice.Tensor(m, dim, start, end, step)


OPERATORS = {
    aten.as_strided_copy.default: Operator(_as_strided),
    aten.embedding.default: Operator(_embedding, _embedding_why_not),
    aten.cat.default: Operator(_cat),
    aten.view_copy.default: Operator(_viewed(lambda m, sizes: m.view(sizes))),
    aten.permute_copy.default: Operator(_viewed(lambda m, dims: m.permute(dims))),
    aten.transpose_copy.int: Operator(_viewed(lambda m, a, b: m.transpose(a, b))),
    aten.expand_copy.default: Operator(_viewed(lambda m, sizes: m.expand(sizes))),
    aten.squeeze_copy.dim: Operator(_viewed(lambda m, dim: m.squeeze(dim))),
    aten.squeeze_copy.dims: Operator(_viewed(lambda m, dims: m.squeeze(dims))),
    aten.unsqueeze_copy.default: Operator(_viewed(lambda m, dim: m.unsqueeze(dim))),
    aten.select_copy.int: Operator(_viewed(lambda m, dim, index: m.select(dim, index))),
    aten.slice_copy.Tensor: Operator(_viewed(_slice)),
    aten.alias_copy.default: Operator(_viewed(lambda m: m)),
    aten.split_with_sizes_copy.default: Operator(_split),
    operator.getitem: Operator(_getitem),
}
