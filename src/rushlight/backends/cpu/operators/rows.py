"""Norms, softmax and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.sizes import Size, product, shape_of, sizes_of
from rushlight.backends.cpu.graph.values import CHANNELS_LAST, View
from rushlight.backends.cpu.operators.facts import PREPARED, REALS, is_replaced, only_first
from rushlight.backends.cpu.tiles.terms import Term, constant
from rushlight.ir.operators import arguments
from rushlight.partition.operators import Operator, needs_constants, val_of
from rushlight.schema import cpu_engine as fb
from rushlight.schema.cpu_engine import TileOp

aten = torch.ops.aten


def _layer_norm(b: Builder, node: Node) -> list[View]:
    args = arguments(node)
    vectors = [_vector(b, args[n]) for n in ("weight", "bias")]
    return [_of_rows(b, args, fb.Norm(False, args["eps"]), vectors)]


def _rms_norm(b: Builder, node: Node) -> View:
    args = arguments(node)
    epsilon = args["eps"] if args["eps"] is not None else torch.finfo(val_of(node).dtype).eps
    return _of_rows(b, args, fb.Norm(True, epsilon), [_vector(b, args["weight"])])


def _of_rows(
    b: Builder, args: dict[str, Any], norm: fb.Norm, vectors: Sequence[View | None]
) -> View:
    """A norm over the last dimensions, as rows."""
    x = b.dense(b.value(args["input"]))
    last = sizes_of(args["normalized_shape"])
    sizes = (product(x.shape[: x.meta.dim() - len(last)]), product(last))
    out = b.new(x.shape)
    b.emit(norm, [x.moved(x.meta.view(sizes)), *vectors], [out.moved(out.meta.view(sizes))])
    return out


def _batch_norm_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    constants = needs_constants("weight", "bias", "running_mean", "running_var", because=PREPARED)
    return only_first(node, is_constant) or constants(node, is_constant)


def _vector(b: Builder, node: Any) -> View | None:
    if node is None:
        return None
    view = b.dense(b.value(node))
    return view.moved(view.meta.view([view.meta.numel()]))


def _group_norm(b: Builder, node: Node) -> list[View]:
    args = arguments(node)
    x = b.value(args["input"])
    last = tuple(x.meta.order()) == CHANNELS_LAST
    x = b.in_order(x, CHANNELS_LAST if last else range(x.meta.dim()))
    out = b.new(x.shape, x.meta.order())
    scale, shift = (_vector(b, args[n]) for n in ("weight", "bias"))
    b.emit(fb.GroupNorm(args["group"], args["eps"]), [x, scale, shift], [out])
    return [out]


def _softmax(log: bool) -> Callable[[Builder, Node], View]:
    def translate(b: Builder, node: Node) -> View:
        args = arguments(node)
        x = b.dense(b.value(args["self"]))
        out = b.new(x.shape)
        dim = args["dim"] % max(x.meta.dim(), 1)
        views = [v.moved(v.meta.view([1])) if v.meta.dim() == 0 else v for v in (x, out)]
        b.emit(fb.Softmax(dim, log), views[:1], views[1:])
        return out

    return translate


def dims_of(node: Node) -> list[int]:
    """The dimensions that a call reduces, in order."""
    args = arguments(node)
    rank = val_of(args["self"]).dim()
    dims = args["dim"]
    dims = [dims] if isinstance(dims, int) else dims
    return sorted({d % rank for d in dims} if dims else range(rank))


def _reduction(kind: fb.ReductionKind) -> Callable[[Builder, Node], View]:
    def translate(b: Builder, node: Node) -> View:
        args = arguments(node)
        return _reduced(b, kind, b.value(args["self"]), dims_of(node), args["keepdim"])

    return translate


def _reduced(b: Builder, kind: fb.ReductionKind, x: View, dims: Sequence[int], keeps: bool) -> View:
    order = x.meta.order()
    at = sorted(order.index(d) for d in dims)
    if at != list(range(at[0], at[-1] + 1)) or not is_without_gaps(x):
        order = [*(d for d in range(x.meta.dim()) if d not in dims), *dims]
        at = list(range(x.meta.dim() - len(dims), x.meta.dim()))
        x = b.in_order(x, order)
    kept = [d for d in order if d not in dims]
    # The result's remaining dimensions keep their order in memory.
    out = b.new([x.shape[d] for d in sorted(kept)], [sorted(kept).index(d) for d in kept])
    lying = out.meta.permute([sorted(kept).index(d) for d in kept])
    b.emit(
        fb.Reduction(kind, at[0], at[-1] + 1),
        [x.moved(x.meta.permute(order))],
        [out.moved(lying)],
    )
    return _kept(out, dims) if keeps else out


def _kept(view: View, dims: Sequence[int]) -> View:
    """A reduced value with the dimensions that it lost, each of size 1."""
    meta = view.meta
    for d in dims:
        meta = meta.unsqueeze(d)
    return view.moved(meta)


def _any(b: Builder, node: Node) -> View:
    """The greatest of ones and zeros, if there is any."""
    condition = b.value(node.args[0])  # type: ignore[arg-type]
    one, zero = constant(1), constant(0)
    ones = b.term(lambda load: Term(TileOp.WHERE, (load(condition), one, zero)), condition.shape)
    greatest = _reduced(b, fb.ReductionKind.MAX, ones, dims_of(node), arguments(node)["keepdim"])
    return b.term(
        lambda load: Term(TileOp.NOT_EQUAL, (load(greatest), zero)), greatest.shape, torch.bool
    )


def _any_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if val_of(node.args[0]).dtype != torch.bool or val_of(node.args[0]).dim() == 0:
        return "its input is not a bool tensor with dimensions, which the engine's any needs"
    return None


def _variance(b: Builder, node: Node) -> View:
    args = arguments(node)
    x, dims = b.value(args["self"]), dims_of(node)
    mean = _reduced(b, fb.ReductionKind.MEAN, x, dims, True)
    wide = mean.moved(mean.meta.expand(x.shape))
    centred = b.term(lambda load: _squared(Term(TileOp.SUB, (load(x), load(wide)))), x.shape)
    out = _reduced(b, fb.ReductionKind.MEAN, centred, dims, args["keepdim"])
    factor = _unbiased(node)
    return b.term(lambda load: Term(TileOp.MUL_VALUE, (load(out),), factor), out.shape)


def _deviation(b: Builder, node: Node) -> View:
    """The root of the variance. Numbers are divided by the greatest magnitude first, since their
    squares might overflow or underflow."""
    args = arguments(node)
    x, dims = b.value(args["self"]), dims_of(node)
    sizes = b.term(lambda load: Term(TileOp.ABS, (load(x),)), x.shape)
    greatest = _reduced(b, fb.ReductionKind.MAX, sizes, dims, False)
    mean = _reduced(b, fb.ReductionKind.MEAN, x, dims, False)

    def unit(load: Callable[[View], Term]) -> Term:
        size = load(greatest)
        return Term(TileOp.WHERE, (Term(TileOp.EQUAL, (size, constant(0))), constant(1), size))

    scale = b.term(unit, greatest.shape)
    centre = b.term(lambda load: Term(TileOp.DIV, (load(mean), load(scale))), mean.shape)
    wide_scale, wide_centre = (
        v.moved(_kept(v, dims).meta.expand(x.shape)) for v in (scale, centre)
    )

    def squares(load: Callable[[View], Term]) -> Term:
        scaled = Term(TileOp.DIV, (load(x), load(wide_scale)))
        return _squared(Term(TileOp.SUB, (scaled, load(wide_centre))))

    mean_square = _reduced(b, fb.ReductionKind.MEAN, b.term(squares, x.shape), dims, False)
    factor = _unbiased(node)

    def root(load: Callable[[View], Term]) -> Term:
        variance = Term(TileOp.MUL_VALUE, (load(mean_square),), factor)
        return Term(TileOp.MUL, (Term(TileOp.SQRT, (variance,)), load(scale)))

    out = b.term(root, mean_square.shape)
    return _kept(out, dims) if args["keepdim"] else out


def _unbiased(node: Node) -> float:
    """The factor from a mean of squares to the variance."""
    count = _count(node)
    assert isinstance(count, int)
    return count / (count - _correction(arguments(node)))


def _squared(term: Term) -> Term:
    return Term(TileOp.SQUARE, (term,))


def _count(node: Node) -> Size:
    return product([shape_of(arguments(node)["self"])[d] for d in dims_of(node)])


def _correction(args: dict[str, Any]) -> float:
    return 1 if args["correction"] is None else args["correction"]


def _variance_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    reason = _reduction_why_not(node, is_constant)
    if reason is not None:
        return reason
    count = _count(node)
    if not isinstance(count, int):
        return "its variance is over a dynamic number of elements, and the engine needs a fixed one"
    return (
        None
        if count > _correction(arguments(node))
        else "its variance is over no more elements than its correction"
    )


def is_without_gaps(view: View) -> bool:
    """Whether elements lie without gaps, in some order."""
    return view.meta.permute(view.meta.order()).is_contiguous()


def _reduction_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if arguments(node).get("dtype") not in (None, *REALS):
        return "its dtype is not a floating point type, which the engine's reductions give"
    if val_of(arguments(node)["self"]).dim() == 0:
        return "its input has no dimensions to reduce"
    return None


OPERATORS = {
    aten.native_layer_norm.default: Operator(_layer_norm, only_first),
    aten._native_batch_norm_legit_no_training.default: Operator(is_replaced, _batch_norm_why_not),
    aten.native_group_norm.default: Operator(_group_norm, only_first),
    aten.rms_norm.default: Operator(_rms_norm),
    aten._softmax.default: Operator(_softmax(False)),
    aten._log_softmax.default: Operator(_softmax(True)),
    aten.any.dim: Operator(_any, _any_why_not),
    aten.std.correction: Operator(_deviation, _variance_why_not),
    aten.var.correction: Operator(_variance, _variance_why_not),
    aten.mean.dim: Operator(_reduction(fb.ReductionKind.MEAN), _reduction_why_not),
    aten.sum.dim_IntList: Operator(_reduction(fb.ReductionKind.SUM), _reduction_why_not),
    aten.amax.default: Operator(_reduction(fb.ReductionKind.MAX), _reduction_why_not),
    aten.amin.default: Operator(_reduction(fb.ReductionKind.MIN), _reduction_why_not),
}
