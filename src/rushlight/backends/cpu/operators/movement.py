"""Data movement: most of it is another view of the same memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.layout import Layout, NoViewError
from rushlight.backends.cpu.graph.sizes import same, shape_of, simple, size_of, sizes_of
from rushlight.backends.cpu.graph.values import View
from rushlight.ir.operators import arguments
from rushlight.partition.operators import Operator, val_of
from rushlight.schema import cpu_engine as fb

aten = torch.ops.aten


def _embedding(b: Builder, node: Node) -> View:
    args = arguments(node)
    weight, indices = args["weight"], b.dense(b.value(args["indices"]))
    out = b.new(shape_of(node), dtype=val_of(node).dtype)
    if b.is_multiplied(weight):
        # The output layer has these weights, too: they are stored once, as it reads them.
        table, columns = b.linear_weight(weight), val_of(weight).shape[0]
    else:
        table, columns = b.table(weight), 0
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
    rank = val_of(node).dim()
    views = [v for v in views if v.meta.dim() == rank or not same(v.meta.numel(), 0)]
    orders = [v.meta.order() for v in views]
    order = orders[0] if all(o == orders[0] for o in orders) else range(rank)
    out = b.new(shape_of(node), order, val_of(node).dtype)
    pieces = out.meta.split([v.shape[args["dim"]] for v in views], args["dim"])
    for view, piece in zip(views, pieces, strict=True):
        b.copy(view, out.moved(piece))
    return out


def _viewed(change: Callable[[Layout, Node], Layout]) -> Callable[[Builder, Node], View]:
    """An operator that is a view of its first argument, or of a dense copy where it must be."""

    def translate(b: Builder, node: Node) -> View:
        view: View = b.value(node.args[0])  # type: ignore[arg-type]
        try:
            return view.moved(change(view.meta, node))
        except NoViewError:
            view = b.dense(view)
            return view.moved(change(view.meta, node))

    return translate


def _as_strided(b: Builder, node: Node) -> View:
    args = arguments(node)
    order = Layout.of(val_of(args["self"])).order()
    source = b.in_order(b.value(args["self"]), order)
    sizes, strides = sizes_of(args["size"]), sizes_of(args["stride"])
    offset = simple(source.meta.offset + size_of(args["storage_offset"] or 0))
    return source.moved(source.meta.as_strided(sizes, strides, offset))


def _split(b: Builder, node: Node) -> list[View]:
    args = arguments(node)
    view = b.value(args["self"])
    sizes = sizes_of(args["split_sizes"])
    return [view.moved(m) for m in view.meta.split(sizes, args["dim"])]


def _getitem(b: Builder, node: Node) -> Any:
    source, index = node.args
    values = b.value(source)  # type: ignore[arg-type]
    return values[index] if index < len(values) else None  # type: ignore[operator]


def _slice(m: Layout, node: Node) -> Layout:
    args = arguments(node)
    dim, start = args["dim"] % m.dim(), size_of(args["start"] or 0)
    size = shape_of(node)[dim]
    # An empty slice may begin anywhere.
    first = 0 if same(size, 0) else m.at(dim, start)
    return m.narrow(dim, first, size, args["step"])


def _select(m: Layout, node: Node) -> Layout:
    args = arguments(node)
    return m.select(args["dim"], size_of(args["index"]))


def _transpose(m: Layout, node: Node) -> Layout:
    args = arguments(node)
    return m.transpose(args["dim0"], args["dim1"])


def _full(b: Builder, node: Node) -> View:
    return b.filled(arguments(node)["fill_value"], shape_of(node), val_of(node).dtype)


def _squeeze(m: Layout, node: Node) -> Layout:
    dim = arguments(node)["dim"]
    return m.squeeze([dim] if isinstance(dim, int) else dim)


OPERATORS = {
    aten.as_strided_copy.default: Operator(_as_strided),
    aten.embedding.default: Operator(_embedding, _embedding_why_not),
    aten.full.default: Operator(_full),
    aten.full_like.default: Operator(_full),
    aten.cat.default: Operator(_cat),
    aten.view_copy.default: Operator(_viewed(lambda m, node: m.view(shape_of(node)))),
    aten.permute_copy.default: Operator(
        _viewed(lambda m, node: m.permute(arguments(node)["dims"]))
    ),
    aten.transpose_copy.int: Operator(_viewed(_transpose)),
    aten.expand_copy.default: Operator(_viewed(lambda m, node: m.expand(shape_of(node)))),
    aten.squeeze_copy.dim: Operator(_viewed(_squeeze)),
    aten.squeeze_copy.dims: Operator(_viewed(_squeeze)),
    aten.unsqueeze_copy.default: Operator(
        _viewed(lambda m, node: m.unsqueeze(arguments(node)["dim"]))
    ),
    aten.select_copy.int: Operator(_viewed(_select)),
    aten.slice_copy.Tensor: Operator(_viewed(_slice)),
    aten.alias_copy.default: Operator(_viewed(lambda m, node: m)),
    aten.split_with_sizes_copy.default: Operator(_split),
    operator.getitem: Operator(_getitem),
}
