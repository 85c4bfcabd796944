"""Decides which calls OpenVINO takes, and gives the reason for each that it does not take.

OpenVINO's reader knows most of Core ATen, but its CPU device computes int64 in 32 bits, and its
integers saturate where PyTorch's wrap around. A delegate must give eager's results, so calls that
move integers or use them as indices are taken, and integer arithmetic is not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.backends.openvino.convert import view_of_copy
from rushlight.ir.custom_ops.dim_order import clone_dim_order, to_dim_order_copy
from rushlight.partition.operators import SIZES

aten = torch.ops.aten

_FLOATS = frozenset({torch.float32, torch.float16})
_MOVED = _FLOATS | {torch.bool, torch.int32, torch.int8, torch.uint8}
_INDICES = frozenset({torch.int64, torch.int32})

# Operators that change no values; they take all dtypes in _MOVED.
_MOVING = """
    alias.default cat.default clone.default constant_pad_nd.default expand.default flip.default
    permute.default repeat.default select.int slice.Tensor slice_scatter.default split.Tensor
    split_with_sizes.default squeeze.dim squeeze.dims stack.default t.default transpose.int
    unbind.int unsqueeze.default view.default pixel_shuffle.default pixel_unshuffle.default
    where.self full_like.default full.default
"""
# Operators from floats to floats.
_COMPUTING = """
    _adaptive_avg_pool2d.default _adaptive_avg_pool3d.default _log_softmax.default
    _native_batch_norm_legit_no_training.default _softmax.default abs.default acos.default
    acosh.default add.Scalar add.Tensor addmm.default amax.default amin.default asin.default
    asinh.default atan.default atan2.default atanh.default avg_pool2d.default bmm.default
    ceil.default clamp.Tensor clamp.default convolution.default cos.default cosh.default
    cumsum.default div.Scalar div.Tensor div.Tensor_mode elu.default erf.default erfc.default
    exp.default expm1.default floor.default fmod.Scalar fmod.Tensor gelu.default glu.default
    grid_sampler_2d.default hardsigmoid.default hardswish.default hardtanh.default
    leaky_relu.default linear.default log.default log10.default log1p.default log2.default
    max.default max.dim max_pool2d_with_indices.default max_pool3d_with_indices.default
    maximum.default mean.default mean.dim min.default min.dim minimum.default mish.default
    mm.default mul.Scalar mul.Tensor native_group_norm.default native_layer_norm.default
    neg.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prod.default prod.dim_int
    reciprocal.default relu.default remainder.Scalar remainder.Tensor round.default
    rsqrt.default rsub.Scalar sigmoid.default sign.default silu.default sin.default sinh.default
    sqrt.default sub.Tensor sum.default sum.dim_IntList tan.default tanh.default
    upsample_bicubic2d.default upsample_bilinear2d.default upsample_bilinear2d.vec
    upsample_nearest1d.default upsample_nearest2d.default upsample_nearest2d.vec var.correction
"""
# Operators from floats to bools.
_COMPARING = """
    eq.Scalar eq.Tensor ge.Scalar ge.Tensor gt.Scalar gt.Tensor isinf.default isnan.default
    le.Scalar le.Tensor lt.Scalar lt.Tensor ne.Scalar ne.Tensor
"""
_LOGICAL = """
    any.default any.dim any.dims logical_and.default logical_not.default logical_or.default
    logical_xor.default bitwise_and.Tensor bitwise_not.default bitwise_or.Tensor
    bitwise_xor.Tensor
"""
# The position of the argument with the indices; the other tensors are only moved.
_INDEXING = {
    "embedding.default": 1,
    "index_select.default": 2,
    "gather.default": 2,
    "index.Tensor": 1,
}
_TO_FLOAT = frozenset({torch.bool, torch.int8, torch.uint8, torch.int32}) | _FLOATS

Roles = tuple[Container[torch.dtype], int | None]
"""The dtypes that tensors may have, and which argument is an index."""


def _table() -> dict[OpOverload, Roles]:
    table: dict[OpOverload, Roles] = {}
    for names, dtypes in (
        (_MOVING, _MOVED),
        (_COMPUTING, _FLOATS),
        (_COMPARING, _FLOATS | {torch.bool}),
        (_LOGICAL, frozenset({torch.bool})),
    ):
        table |= {_overload(name): (dtypes, None) for name in names.split()}
    return table | {_overload(name): (_MOVED, at) for name, at in _INDEXING.items()}


def _overload(name: str) -> OpOverload:
    packet, overload = name.split(".")
    overloaded: OpOverload = getattr(getattr(aten, packet), overload)
    return overloaded


_TABLE = _table()
_QUANTIZING = frozenset({"quantize_per_tensor", "quantize_per_channel"})
_DEQUANTIZING = frozenset({"dequantize_per_tensor", "dequantize_per_channel"})
WHOLE = tuple(
    _overload(name)
    for name in (
        "hardsigmoid.default hardswish.default mish.default native_layer_norm.default silu.default"
    ).split()
)
"""Operators that OpenVINO computes in one node where their decomposition takes several."""


class OpenvinoSupport:
    """Decides which calls OpenVINO takes, and gives the reasons for the others.

    Args:
        types_to_skip: operators to leave out, by name (`"aten.add.Tensor"`).
        names_to_skip: nodes to leave out, by name in the graph.

    Attributes:
        constants: the nodes of the program's parameters, buffers and constants.
    """

    def __init__(
        self, types_to_skip: Container[str] = (), names_to_skip: Container[str] = ()
    ) -> None:
        self._types, self._names = types_to_skip, names_to_skip
        self.constants: Container[Node] = ()

    def why_not(self, node: Node) -> str | None:
        """The reason why OpenVINO does not take a call; None if it does."""
        if str(node.target) in self._types:
            return f"op_types_to_skip names {node.target}"
        if node.name in self._names:
            return f"op_names_to_skip names {node.name}"
        if node.target in SIZES or node.target is operator.getitem:
            return None
        if not isinstance(node.target, OpOverload):
            return "OpenVINO takes operators only, no control flow and no other functions"
        if node.target.namespace == "quantized_decomposed":
            return _why_not_quantized(node, self.constants)
        if node.target in (clone_dim_order, to_dim_order_copy):
            return _why_not_converted(node)
        target = view_of_copy(node.target)
        if target not in _TABLE:
            return f"OpenVINO has no counterpart of {node.target} that gives the same results"
        special = _SPECIAL.get(target)
        return _why_not_values(node, *_TABLE[target]) or (special(node) if special else None)


def _why_not_values(
    node: Node, dtypes: Container[torch.dtype], index: int | None = None
) -> str | None:
    """The reason against a call from the dtypes and sizes of its values; None if there is none."""
    argument = node.args[index] if index is not None and index < len(node.args) else ()
    indices = argument if isinstance(argument, list | tuple) else (argument,)
    values = [(n.meta.get("val"), n in indices) for n in node.all_input_nodes]
    results = node.meta.get("val")
    used = {u.args[1] for u in node.users if u.target is operator.getitem}
    if isinstance(results, list | tuple):
        values += [(r, False) for i, r in enumerate(results) if i in used]
    else:
        values.append((results, False))
    for value, is_index in values:
        if isinstance(value, torch.SymFloat | torch.SymBool):
            return "it takes a number that is computed at run time, and OpenVINO takes sizes only"
        if not isinstance(value, torch.Tensor):
            continue
        if value.dtype not in (_INDICES if is_index else dtypes):
            return _why_not_dtype(value.dtype)
        if any(size == 0 for size in value.shape if isinstance(size, int)):
            return "it has a tensor without elements"
    return None


def _why_not_dtype(dtype: torch.dtype) -> str:
    shown = str(dtype).removeprefix("torch.")
    if dtype == torch.int64:
        return "it computes with int64, which OpenVINO does in 32 bits"
    if dtype == torch.float64:
        return "it computes with float64, which OpenVINO does in float32"
    if dtype in (torch.int32, torch.int16, torch.int8, torch.uint8):
        return f"it computes with {shown}, which saturates in OpenVINO where eager wraps around"
    return f"it computes with {shown}, which OpenVINO's CPU device does not take for this operator"


def _why_not_converted(node: Node) -> str | None:
    """The reason against a change of dtype or layout; None if there is none."""
    source, result = node.args[0], node.meta["val"]
    assert isinstance(source, Node)
    dtype = source.meta["val"].dtype
    if dtype == result.dtype:
        return _why_not_values(node, _MOVED)
    if result.dtype not in _FLOATS:
        reason = f"it converts {dtype} to {result.dtype}, and OpenVINO saturates where eager wraps"
        return reason.replace("torch.", "")
    return _why_not_values(node, _TO_FLOAT)


def _why_not_quantized(node: Node, constants: Container[Node]) -> str | None:
    """The reason against a quantising or dequantising call, which needs constant parameters."""
    assert isinstance(node.target, OpOverload)
    name = node.target.overloadpacket.__name__
    if name not in _QUANTIZING | _DEQUANTIZING or node.target._overloadname != "default":
        return f"OpenVINO has no counterpart of {node.target}"
    dtype = next(a for a in node.args if isinstance(a, torch.dtype))
    if dtype not in (torch.int8, torch.uint8):
        return f"OpenVINO has no kernels for tensors quantised to {dtype}".replace("torch.", "")
    dequantized = node.kwargs.get("out_dtype")
    if dequantized not in (None, torch.float32):
        shown = str(dequantized).removeprefix("torch.")
        return f"it dequantises to {shown}, and OpenVINO to float32 only"
    parameters = [a for a in node.args[1:3] if isinstance(a, Node)]
    if len(node.args) > 2 and node.args[2] is None:
        return "its zero points are None, and OpenVINO needs them"
    if not all(p in constants or p.op == "get_attr" for p in parameters):
        return "its scales or zero points are computed at run time, and OpenVINO needs constants"
    source = node.args[0]
    assert isinstance(source, Node)
    if name in _QUANTIZING and source.meta["val"].dtype != torch.float32:
        return f"it quantises {source.meta['val'].dtype}, not float32".replace("torch.", "")
    return None


def _only_first_result(node: Node) -> str | None:
    if any(u.target is operator.getitem and u.args[1] != 0 for u in node.users):
        return "another result than the first is used, which OpenVINO does not compute"
    return None


def _no_scalar(node: Node) -> str | None:
    value = node.args[0].meta["val"]  # type: ignore[union-attr]
    return (
        "its input has no dimensions, and OpenVINO needs at least one" if value.dim() == 0 else None
    )


def _no_bools(node: Node) -> str | None:
    if any(n.meta["val"].dtype == torch.bool for n in node.all_input_nodes):
        return "it compares bools, and OpenVINO compares these only with each other"
    return None


def _choosing(node: Node) -> str | None:
    is_bool = node.meta["val"].dtype == torch.bool
    return "it chooses between bools, and OpenVINO does so in some cases only" if is_bool else None


def _scaling(node: Node) -> str | None:
    """The reason against resizing: a given scale may differ from the ratio of the sizes.

    With the scale 1.7, a size of 4 becomes 6, and the ratio of the sizes is 1.5.
    """
    before = node.args[0].meta["val"].shape  # type: ignore[union-attr]
    after = node.meta["val"].shape
    names = [a.name for a in node.target._schema.arguments]  # type: ignore[union-attr]
    scales = [_argument(node, i, name) for i, name in enumerate(names) if name.startswith("scales")]
    sizes = zip(before[2:], after[2:], scales, strict=True)
    if any(scale is not None and one * scale != other for one, other, scale in sizes):
        return "its scale differs from the ratio of the sizes, with which OpenVINO computes"
    return None


def _indexing(node: Node) -> str | None:
    if sum(isinstance(index, Node) for index in node.args[1]) != 1:  # type: ignore[union-attr]
        return (
            "it indexes several dimensions at once, and OpenVINO orders the result in another way"
        )
    return _no_scalar(node)


def _argument(node: Node, at: int, name: str) -> Any:
    """An argument, by position or by name; None if it is left out."""
    return node.args[at] if len(node.args) > at else node.kwargs.get(name)


_POOL_SIZES = {1: "kernel_size", 2: "stride", 3: "padding"}


def _pooling(node: Node) -> str | None:
    if _argument(node, 6, "divisor_override") is not None:
        return "OpenVINO has no divisor_override"
    sizes = (_argument(node, at, name) for at, name in _POOL_SIZES.items())
    if any(size and len(size) == 1 for size in sizes):
        return "it has one number for height and width together, and OpenVINO needs one for each"
    return None


def _slicing(node: Node) -> str | None:
    return None if len(node.args) > 3 else "it has neither start nor end"


def _squeezing(node: Node) -> str | None:
    return None if node.args[1] else "it names no dimensions, which OpenVINO reads as all of them"


def _variance(node: Node) -> str | None:
    if not _argument(node, 1, "dim") or _argument(node, 2, "correction") not in (0, 1):
        return "it names no dimensions, or its correction is neither 0 nor 1, as OpenVINO needs"
    return _no_scalar(node)


_SPECIAL: dict[OpOverload, Callable[[Node], str | None]] = {
    **{_overload(name): _no_bools for name in _COMPARING.split()},
    aten.amax.default: _no_scalar,
    aten.amin.default: _no_scalar,
    aten.avg_pool2d.default: _pooling,
    aten.gather.default: _no_scalar,
    aten.index.Tensor: _indexing,
    aten.index_select.default: _no_scalar,
    aten.max.dim: _no_scalar,
    aten.max_pool2d_with_indices.default: _only_first_result,
    aten.max_pool3d_with_indices.default: _only_first_result,
    aten.mean.dim: _no_scalar,
    aten.min.dim: _no_scalar,
    aten._native_batch_norm_legit_no_training.default: _only_first_result,
    aten.native_group_norm.default: _only_first_result,
    aten.native_layer_norm.default: _only_first_result,
    aten.prod.dim_int: _no_scalar,
    aten.slice.Tensor: _slicing,
    aten.squeeze.dims: _squeezing,
    aten.upsample_bicubic2d.default: _scaling,
    aten.upsample_bilinear2d.default: _scaling,
    aten.upsample_nearest1d.default: _scaling,
    aten.upsample_nearest2d.default: _scaling,
    aten.var.correction: _variance,
    aten.where.self: _choosing,
}
