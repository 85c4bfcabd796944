"""Rewrites of a captured graph before annotation, so that more of it can be quantised."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from rushlight.quantization.annotate import BATCH_NORMS, CONVOLUTIONS, LINEAR
from rushlight.quantization.layers import attribute_of

aten = torch.ops.aten

_BINARY = "add sub mul"
_UNARY = (
    "relu relu6 hardtanh clamp hardswish hardsigmoid silu elu leaky_relu dropout feature_dropout"
)
PRODUCTS = frozenset({*CONVOLUTIONS, LINEAR})
_PADDING_AT = {aten.conv1d.default: 4, aten.conv2d.default: 4}
_PRODUCTS: dict[Any, int] = {
    aten.addmm.default: 1,
    aten.mm.default: 0,
    aten.matmul.default: 0,
}  # the index of the left operand
_DROPOUTS = frozenset({aten.dropout.default, aten.feature_dropout.default})
_IN_PLACE = {
    **{getattr(aten, f"{name}_").Tensor: getattr(aten, name).Tensor for name in _BINARY.split()},
    **{getattr(aten, f"{name}_").default: getattr(aten, name).default for name in _UNARY.split()},
}


def prepare_graph(model: GraphModule) -> GraphModule:
    """Rewrite products, paddings and in-place calls for the annotations; `model` is changed."""
    transposed: dict[str, str] = {}
    for node in list(model.graph.nodes):
        _make_functional(node)
    for node in list(model.graph.nodes):
        if node.target in _PADDING_AT:
            _fold_padding(node)
        elif node.target in _DROPOUTS and node.args[2] is False:
            node.replace_all_uses_with(node.args[0])
        elif node.target in _PRODUCTS:
            _to_linear(model, node, transposed)
    model.graph.eliminate_dead_code()
    model.recompile()
    return model


def part_norms(model: GraphModule) -> None:
    """Keep batch norms from being folded into convolutions whose results have other users.

    torchao ignores these users when it folds, and they would get the norm's result.
    """
    for node in list(model.graph.nodes):
        source = node.args[0] if node.target in BATCH_NORMS else None
        if isinstance(source, Node) and len(source.users) > 1 and source.target in PRODUCTS:
            with model.graph.inserting_before(node):
                same = model.graph.call_function(aten.alias.default, (source,))
                same.meta = {k: v for k, v in source.meta.items() if k != "quantization_annotation"}
            node.replace_input_with(source, same)
    model.recompile()


def _make_functional(node: Node) -> None:
    """Replace an operator that changes its input by one with a result, which later calls use.

    A quantised value is dequantised for each of its users, and no user may change the value of
    another. A value that may share memory stays as it is, and is not quantised.
    """
    x: Any = node.args[0] if node.args else None
    if node.target not in _IN_PLACE or not isinstance(x, Node) or x.op != "call_function":
        return
    schema = getattr(x.target, "_schema", None)
    if schema is None or any(r.alias_info is not None for r in schema.returns):
        return
    node.target = _IN_PLACE[node.target]
    places = {n: at for at, n in enumerate(node.graph.nodes)}
    for user in list(x.users):
        if places[user] > places[node]:
            user.replace_input_with(x, node)


def _to_linear(model: GraphModule, node: Node, transposed: dict[str, str]) -> None:
    """Write a product with a constant matrix as `linear`, of the transposed matrix."""
    at = _PRODUCTS[node.target]
    x, weight = node.args[at], node.args[at + 1]
    bias = node.args[0] if at else None
    if not isinstance(weight, Node) or weight.op != "get_attr" or node.kwargs:
        return
    value = attribute_of(model, str(weight.target))
    is_vector = not isinstance(bias, Node) or bias.meta["val"].dim() == 1
    if value.dim() != 2 or not is_vector or node.meta["val"].dim() < 2 or not isinstance(x, Node):
        return
    name = transposed.get(str(weight.target))
    if name is None:
        name = transposed[str(weight.target)] = f"{weight.target}_transposed".replace(".", "_")
        model.register_parameter(
            name, torch.nn.Parameter(value.detach().t().contiguous(), value.requires_grad)
        )
    with model.graph.inserting_before(node):
        matrix = model.graph.get_attr(name)
        matrix.meta["val"] = weight.meta["val"].t()
        args = (x, matrix) if bias is None else (x, matrix, bias)
        linear = model.graph.call_function(aten.linear.default, args)
    linear.meta = dict(node.meta)
    node.replace_all_uses_with(linear)


def _fold_padding(node: Node) -> None:
    """Fold a symmetric zero padding of the input into a convolution, so that it is not observed."""
    source: Any = node.args[0]
    if source.target not in (aten.pad.default, aten.constant_pad_nd.default):
        return
    pads = _zero_pads(source)
    if pads is None:
        return
    spatial = node.meta["val"].dim() - 2
    pairs = [tuple(pads[i : i + 2]) for i in range(0, len(pads), 2)]
    symmetric = all(isinstance(a, int) and a == b and a >= 0 for a, b in pairs)
    if len(pairs) > spatial or not symmetric:
        return
    extra = [0] * (spatial - len(pairs)) + [a for a, _ in reversed(pairs)]
    args: list[Any] = list(node.args) + [None, [1], [0]][len(node.args) - 2 :]
    own = args[4] if len(args[4]) == spatial else args[4] * spatial
    args[4] = [p + e for p, e in zip(own, extra, strict=True)]
    args[0] = source.args[0]
    node.args = tuple(args)


def _zero_pads(node: Node) -> list[Any] | None:
    """The pads of a padding with zeros; None for another padding."""
    args = [*node.args, *node.kwargs.values()]
    if node.target is aten.pad.default:
        if len(args) > 2 and args[2] != "constant":
            return None
        value = args[3] if len(args) > 3 else 0
    else:
        value = args[2] if len(args) > 2 else 0
    pads: Any = args[1]
    return list(pads) if value in (None, 0) else None
