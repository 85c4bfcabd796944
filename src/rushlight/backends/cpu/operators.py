"""The calls that are steps of their own: what the engine takes of them, and the steps."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu import pack, tiles
from rushlight.backends.cpu.build import Builder
from rushlight.backends.cpu.graph import View, order_of
from rushlight.schema import cpu_engine as fb

aten = torch.ops.aten


@dataclass(frozen=True)
class Operator:
    """What the engine knows of an operator.

    Attributes:
        translate: makes the steps.
        why_not: given the call and which of its arguments are constants, why it is not taken.
    """

    translate: Callable[[Builder, Node], Any]
    why_not: Callable[[Node, Callable[[Any], bool]], str | None] = lambda node, is_constant: None


def arguments(node: Node) -> dict[str, Any]:
    """The arguments of a call by the names of its schema, defaults filled in."""
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    given = dict(zip((a.name for a in schema), node.args, strict=False))
    return {a.name: given.get(a.name, node.kwargs.get(a.name, a.default_value)) for a in schema}


def _val(node: Any) -> torch.Tensor:
    val: torch.Tensor = node.meta["val"]
    return val


# --- products -------------------------------------------------------------------------------------


def _needs_constants(*names: str) -> Callable[[Node, Callable[[Any], bool]], str | None]:
    def why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
        args = arguments(node)
        for name in names:
            if args[name] is not None and not is_constant(args[name]):
                return f"its {name} is computed: the engine packs weights ahead of time"
        return None

    return why_not


def _product(b: Builder, x: View, matrix: View, bias: View | None, columns: int) -> View:
    rows = b.rows(x)
    out = b.new([*x.shape[:-1], columns])
    b.emit(fb.Product(), [rows, matrix, bias], [b.rows(out)])
    return out


def _bias(b: Builder, node: Any) -> View | None:
    if node is None:
        return None
    data = b.data(node)
    assert data is not None
    return b.constant((node, "bias"), lambda: pack.bias(data))


def _linear(b: Builder, node: Node) -> View:
    args = arguments(node)
    weight = b.data(args["weight"])
    assert weight is not None
    matrix = b.constant((args["weight"], "rows"), lambda: pack.panels(weight.t()))
    bias = _bias(b, args["bias"])
    return _product(b, b.value(args["input"]), matrix, bias, weight.shape[0])


def _mm_constant(b: Builder, x: Any, weight: Any, bias: Any) -> View:
    data = b.data(weight)
    assert data is not None
    matrix = b.constant((weight, "columns"), lambda: pack.panels(data))
    return _product(b, b.value(x), matrix, _bias(b, bias), data.shape[1])


def _addmm(b: Builder, node: Node) -> View:
    args = arguments(node)
    return _mm_constant(b, args["mat1"], args["mat2"], args["self"])


def _addmm_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if args["beta"] != 1 or args["alpha"] != 1:
        return "the engine's addmm has no alpha and beta"
    if _val(args["self"]).dim() != 1 or _val(args["self"]).shape[0] != _val(node).shape[1]:
        return "what it adds is not one number for each column"
    return _needs_constants("self", "mat2")(node, is_constant)


def _mm(b: Builder, node: Node) -> View:
    x, weight = node.args
    if b.data(weight) is not None:
        return _mm_constant(b, x, weight, None)
    out = b.new(_val(node).shape)
    one, other, result = (
        v.moved(v.meta.unsqueeze(0))
        for v in (b.value(x), b.value(weight), out)  # type: ignore[arg-type]
    )
    _batch_product(b, one, other, result)
    return out


def _bmm(b: Builder, node: Node) -> View:
    out = b.new(_val(node).shape)
    one, other = (b.value(arg) for arg in node.args)  # type: ignore[arg-type]
    _batch_product(b, one, other, out)
    return out


def _batch_product(b: Builder, one: View, other: View, out: View) -> None:
    if one.shape[2] > 1 and one.meta.stride(2) != 1:
        one = b.dense(one)
    b.emit(fb.BatchProduct(), [one, other], [out])


# --- convolutions and pools -----------------------------------------------------------------------

_CHANNELS_LAST = (0, 2, 3, 1)


def _conv_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if _val(args["input"]).dim() not in (3, 4):
        return "the engine's convolutions have one or two dimensions"
    if args["transposed"] and any(d != 1 for d in args["dilation"]):
        return "the engine's transposed convolutions are not dilated"
    return _needs_constants("weight", "bias")(node, is_constant)


def _convolution(b: Builder, node: Node) -> View:
    args = arguments(node)
    image, edges = _padded(b, args["input"])
    weight, groups = b.data(args["weight"]), args["groups"]
    assert weight is not None
    stride, padding, dilation = (list(args[n]) for n in ("stride", "padding", "dilation"))
    out_sizes = list(_val(node).shape)
    is_line = image.meta.dim() == 3
    if is_line:
        image = image.moved(image.meta.unsqueeze(2))
        weight = weight.unsqueeze(2)
        stride, dilation, out_sizes = (
            [1, *stride],
            [1, *dilation],
            [*out_sizes[:2], 1, out_sizes[2]],
        )
        padding = [0, *padding]
    kernel = list(weight.shape[2:])
    padding = [p + e for p, e in zip((*padding, *padding), edges, strict=True)]
    kind = fb.ConvolutionKind.DENSE
    if args["transposed"]:
        kind = fb.ConvolutionKind.TRANSPOSED
    elif groups == image.shape[1] and groups > 1:
        kind = fb.ConvolutionKind.DEPTHWISE
    if kind is not fb.ConvolutionKind.DENSE:
        image = b.in_order(image, _CHANNELS_LAST)
    weights = b.constant((args["weight"], kind), lambda: pack.convolution(weight, groups, kind))
    out = b.new(out_sizes, _CHANNELS_LAST)
    operation = fb.Convolution(kind, kernel, stride, padding, dilation, groups)
    b.emit(operation, [image, weights, _bias(b, args["bias"])], [out])
    return out.moved(out.meta.squeeze(2)) if is_line else out


def _is_zero_pad(node: Any) -> bool:
    """Whether a call pads images with zeros, and only convolutions read it."""
    if not isinstance(node, Node) or node.target is not aten.constant_pad_nd.default:
        return False
    args = arguments(node)
    pad = list(args["pad"])
    return (
        args["value"] == 0
        and len(pad) <= 4
        and _val(node).dim() == 4
        and min(pad) >= 0
        and all(
            u.target is aten.convolution.default and u.args[0] is node and not u.args[6]
            for u in node.users
        )
    )


def _padded(b: Builder, node: Node) -> tuple[View, list[int]]:
    """An image, and the zeros around it: top, left, bottom, right."""
    if not _is_zero_pad(node):
        return b.value(node), [0] * 4
    args = arguments(node)
    left, right, top, bottom = (*args["pad"], 0, 0)[:4]
    return b.value(args["self"]), [top, left, bottom, right]


def _pad(b: Builder, node: Node) -> View | None:
    if _is_zero_pad(node):
        return None  # the convolutions do it
    args = arguments(node)
    source = b.value(args["self"])
    out = b.new(_val(node).shape, dtype=_val(node).dtype)
    inner = out.meta
    pad = list(args["pad"])
    for i in range(len(pad) // 2):
        dim, (low, high) = -1 - i, pad[2 * i : 2 * i + 2]
        first = max(low, 0)
        inner = inner.narrow(dim, first, inner.shape[dim] - first - max(high, 0))
        cut = -min(low, 0)
        size = source.shape[dim] - cut - -min(high, 0)
        source = source.moved(source.meta.narrow(dim, cut, size))
    fill = b.constant(
        (float(args["value"]), out.meta.dtype),
        lambda: torch.full((1,), args["value"]).to(out.meta.dtype),
    )
    b.copy(fill.moved(fill.meta.expand(out.shape)), out)
    b.copy(source, out.moved(inner))
    return out


def _window(args: dict[str, Any]) -> tuple[list[int], list[int], list[int], list[int]]:
    kernel = _pair(args["kernel_size"])
    stride = _pair(args["stride"] or kernel)
    padding = _pair(args["padding"])
    return kernel, stride, [*padding, *padding], _pair(args.get("dilation") or 1)


def _pair(numbers: Any) -> list[int]:
    pair = [numbers] if isinstance(numbers, int) else list(numbers)
    return pair * 2 if len(pair) == 1 else pair


def _pool_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if _val(args["self"]).dim() != 4:
        return "the engine pools images [N, C, H, W]"
    if args["ceil_mode"]:
        return "the engine's pools do not round up"
    return _only_first(node, is_constant) if "dilation" in args else None


def _only_first(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    for user in node.users:
        if user.target is operator.getitem and user.args[1] != 0 and user.users:
            return f"its result {user.args[1]} is used, which the engine does not compute"
    return None


def _pool(b: Builder, node: Node) -> Any:
    args = arguments(node)
    is_max = "dilation" in args
    image = b.in_order(b.value(args["self"]), _CHANNELS_LAST)
    val = _val(node)[0] if is_max else _val(node)
    out = b.new(val.shape, _CHANNELS_LAST)
    operation = fb.Pooling(not is_max, *_window(args))
    if not is_max:
        operation.count_padding = bool(args["count_include_pad"])
        operation.divisor = args["divisor_override"] or 0
    b.emit(operation, [image], [out])
    return [out] if is_max else out


# --- norms, softmax, reductions -------------------------------------------------------------------


def _layer_norm(b: Builder, node: Node) -> list[View]:
    args = arguments(node)
    x = b.dense(b.value(args["input"]))
    width = math.prod(args["normalized_shape"])
    out = b.new(x.shape)
    rows = [v.moved(v.meta.view(-1, width)) for v in (x, out)]
    scale, shift = (_vector(b, args[n]) for n in ("weight", "bias"))
    b.emit(fb.Norm(False, args["eps"]), [rows[0], scale, shift], [rows[1]])
    return [out]


def _rms_norm(b: Builder, node: Node) -> View:
    args = arguments(node)
    x = b.dense(b.value(args["input"]))
    width = math.prod(args["normalized_shape"])
    epsilon = args["eps"] if args["eps"] is not None else torch.finfo(x.meta.dtype).eps
    out = b.new(x.shape)
    rows = [v.moved(v.meta.view(-1, width)) for v in (x, out)]
    b.emit(fb.Norm(True, epsilon), [rows[0], _vector(b, args["weight"])], [rows[1]])
    return out


def _vector(b: Builder, node: Any) -> View | None:
    if node is None:
        return None
    view = b.dense(b.value(node))
    return view.moved(view.meta.view(-1))


def _group_norm(b: Builder, node: Node) -> list[View]:
    args = arguments(node)
    x = b.value(args["input"])
    last = tuple(order_of(x.meta)) == _CHANNELS_LAST
    x = b.in_order(x, _CHANNELS_LAST if last else range(x.meta.dim()))
    out = b.new(x.shape, order_of(x.meta))
    scale, shift = (_vector(b, args[n]) for n in ("weight", "bias"))
    b.emit(fb.GroupNorm(args["group"], args["eps"]), [x, scale, shift], [out])
    return [out]


def _softmax(log: bool) -> Callable[[Builder, Node], View]:
    def translate(b: Builder, node: Node) -> View:
        args = arguments(node)
        x = b.dense(b.value(args["self"]))
        out = b.new(x.shape)
        dim = args["dim"] % max(x.meta.dim(), 1)
        views = [v.moved(v.meta.view(1)) if v.meta.dim() == 0 else v for v in (x, out)]
        b.emit(fb.Softmax(dim, log), views[:1], views[1:])
        return out

    return translate


def _softmax_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    return "its half_to_float is for halves" if arguments(node)["half_to_float"] else None


def _dims(node: Node) -> list[int]:
    args = arguments(node)
    rank = _val(args["self"]).dim()
    dims = args["dim"]
    dims = [dims] if isinstance(dims, int) else dims
    return sorted({d % rank for d in dims} if dims else range(rank))


def _reduction(kind: fb.ReductionKind) -> Callable[[Builder, Node], View]:
    def translate(b: Builder, node: Node) -> View:
        args = arguments(node)
        x, dims = b.value(args["self"]), _dims(node)
        order = order_of(x.meta)
        at = sorted(order.index(d) for d in dims)
        if at != list(range(at[0], at[-1] + 1)) or not is_without_gaps(x):
            order = [*(d for d in range(x.meta.dim()) if d not in dims), *dims]
            at = list(range(x.meta.dim() - len(dims), x.meta.dim()))
            x = b.in_order(x, order)
        kept = [d for d in order if d not in dims]
        # The result lies as what is left of the input does.
        out = b.new([x.shape[d] for d in sorted(kept)], [sorted(kept).index(d) for d in kept])
        lying = out.meta.permute([sorted(kept).index(d) for d in kept])
        b.emit(
            fb.Reduction(kind, at[0], at[-1] + 1),
            [x.moved(x.meta.permute(order))],
            [out.moved(lying)],
        )
        meta = out.meta
        for d in dims if args["keepdim"] else []:
            meta = meta.unsqueeze(d)
        return out.moved(meta)

    return translate


def is_without_gaps(view: View) -> bool:
    """Whether elements lie without gaps, in some order."""
    ordered = view.meta.permute(order_of(view.meta))
    return bool(ordered.is_contiguous())


def _reduction_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    if arguments(node).get("dtype") not in (None, torch.float32):
        return "the engine reduces float32 to float32"
    if _val(arguments(node)["self"]).dim() == 0:
        return "it reduces a single number"
    return None


# --- data movement --------------------------------------------------------------------------------


def _embedding(b: Builder, node: Node) -> View:
    args = arguments(node)
    table, indices = b.dense(b.value(args["weight"])), b.dense(b.value(args["indices"]))
    out = b.new(_val(node).shape)
    b.emit(fb.Gather(), [table, indices], [out])
    return out


def _embedding_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    return (
        None
        if _val(arguments(node)["indices"]).dtype == torch.int64
        else "its indices are no int64"
    )


def _cat(b: Builder, node: Node) -> View:
    args = arguments(node)
    views = [b.value(n) for n in args["tensors"]]
    views = [v for v in views if v.meta.numel() > 0 or v.meta.dim() == _val(node).dim()]
    orders = [order_of(v.meta) for v in views]
    order = orders[0] if all(o == orders[0] for o in orders) else range(_val(node).dim())
    out = b.new(_val(node).shape, order, _val(node).dtype)
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


# --- attention ------------------------------------------------------------------------------------


def _attention_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    for name in ("query", "key", "value"):
        if _val(args[name]).dim() != 4 or _val(args[name]).dtype != torch.float32:
            return "the engine's attention takes [batch, heads, length, width] of float32"
    if args["dropout_p"]:
        return "the engine's attention has no dropout"
    mask = args["attn_mask"]
    if mask is not None and _val(mask).dtype not in (torch.float32, torch.bool):
        return "the engine's attention takes masks of float32 or bool"
    return None


def _attention(b: Builder, node: Node) -> View:
    args = arguments(node)
    views = [_in_rows(b, b.value(args[n])) for n in ("query", "key", "value")]
    shape = _val(node).shape
    sizes = (*shape[:3], views[1].shape[2])
    mask, causal = _mask(b, args["attn_mask"], sizes)
    scale = args["scale"] if args["scale"] is not None else views[0].shape[3] ** -0.5
    # Rows of all heads lie beside one another, as the projection behind them wants it.
    out = b.new(shape, (0, 2, 1, 3))
    operation = fb.Attention(scale, causal or bool(args["is_causal"]))
    b.emit(operation, [*views, mask], [out])
    return out


def _mask(b: Builder, node: Any, sizes: Sequence[int]) -> tuple[View | None, bool]:
    """What is added to scores, and whether that is what causal attention does by itself."""
    if node is None:
        return None, False
    data = b.data(node)
    if data is not None and data.dtype == torch.bool:
        if bool(data.all()):
            return None, False
        rows = data.expand(*data.shape[:-2], *sizes[-2:]) if data.dim() >= 2 else data
        if data.dim() >= 2 and torch.equal(rows, torch.ones_like(rows).tril()):
            return None, True
        view = b.constant((node, "added"), lambda: added(data))
    else:
        view = b.value(node)
        if view.meta.dtype == torch.bool:
            view = b.term(lambda load: added_term(load(view)), view.shape)
    return view.moved(view.meta.expand(*sizes)), False


def added(allowed: torch.Tensor) -> torch.Tensor:
    """What is added to scores for a mask of what is allowed."""
    return torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf).contiguous()


def added_term(allowed: tiles.Term) -> tiles.Term:
    """The same of a mask that is computed."""
    never = tiles.constant(-math.inf)
    return tiles.Term(tiles.TileOp.WHERE, (allowed, tiles.constant(0), never))


def _in_rows(b: Builder, view: View) -> View:
    return view if view.shape[3] <= 1 or view.meta.stride(3) == 1 else b.dense(view)


OPERATORS: dict[Any, Operator] = {
    aten.linear.default: Operator(_linear, _needs_constants("weight", "bias")),
    aten.addmm.default: Operator(_addmm, _addmm_why_not),
    aten.mm.default: Operator(_mm),
    aten.bmm.default: Operator(_bmm),
    aten.convolution.default: Operator(_convolution, _conv_why_not),
    aten.max_pool2d_with_indices.default: Operator(_pool, _pool_why_not),
    aten.avg_pool2d.default: Operator(_pool, _pool_why_not),
    aten.native_layer_norm.default: Operator(_layer_norm, _only_first),
    aten.native_group_norm.default: Operator(_group_norm, _only_first),
    aten.rms_norm.default: Operator(_rms_norm),
    aten._softmax.default: Operator(_softmax(False), _softmax_why_not),
    aten._log_softmax.default: Operator(_softmax(True), _softmax_why_not),
    aten.mean.dim: Operator(_reduction(fb.ReductionKind.MEAN), _reduction_why_not),
    aten.sum.dim_IntList: Operator(_reduction(fb.ReductionKind.SUM), _reduction_why_not),
    aten.amax.default: Operator(_reduction(fb.ReductionKind.MAX), _reduction_why_not),
    aten.amin.default: Operator(_reduction(fb.ReductionKind.MIN), _reduction_why_not),
    aten.embedding.default: Operator(_embedding, _embedding_why_not),
    aten.cat.default: Operator(_cat),
    aten.constant_pad_nd.default: Operator(_pad),
    aten.scaled_dot_product_attention.default: Operator(_attention, _attention_why_not),
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
"""What the engine takes beside elementwise calls."""

ANY_DTYPE: Sequence[Any] = (
    aten.scaled_dot_product_attention.default,
    aten.cat.default,
    aten.embedding.default,
    aten.constant_pad_nd.default,
    operator.getitem,
    aten.split_with_sizes_copy.default,
    *(target for target in OPERATORS if "_copy" in str(target)),
)
"""Those that only move elements, or look at dtypes themselves; all others take float32."""

KEPT_WHOLE = [
    aten.linear.default,
    aten.scaled_dot_product_attention.default,
    aten.rms_norm.default,
]
"""Operators that the engine computes in one step where their decomposition takes several."""
