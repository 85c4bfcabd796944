"""The patterns of quantised graphs: calls on bytes take their place, the rest stays in float32.

`dequantize`, an operator, an activation and `quantize` become one call that computes with integers.
An operator whose inputs or result are not quantised is computed in float32, and the remaining calls
that quantise and dequantise become nodes of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, traced_shape
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.integers.facts import (
    constant_of,
    operands_of,
    read,
    recurrent_weights,
    rows_of,
)
from rushlight.backends.cpu.patterns.integers.joined import join_products
from rushlight.backends.cpu.patterns.integers.moves import dequantize_late, quantize_early
from rushlight.backends.cpu.patterns.integers.products import (
    dynamic_product,
    product,
    weight_only_product,
)
from rushlight.backends.cpu.patterns.integers.residuals import fuse_residuals
from rushlight.backends.cpu.patterns.integers.results import fuse_result, why_not_integer
from rushlight.capture.recurrent import recurrence_of
from rushlight.ir.operators import arguments
from rushlight.ir.quantized_values import dequantizes_constant, name_of, quantizes

_CONVERTING = (calls.quantize, calls.dequantize, calls.flip, calls.quantize_rows)


def fuse_quantized(r: Rewriter) -> dict[str, str]:
    """Replace the patterns of quantised calls by calls on bytes.

    Returns:
        why calls with dequantised inputs are computed in float32: {name of the call: reason}.
    """
    if not any(name_of(node) for node in r.graph.nodes):
        return {}
    _name_bytes(r)
    quantize_early(r)
    dequantize_late(r)
    for node in list(r.graph.find_nodes(op="call_function", target=calls.quantize)):
        new = fuse_result(r, node)
        if new is not None:
            r.replace(node, new)
    r.clean()
    for node in list(r.graph.nodes):
        new = (
            product(r, node, node, None)
            or dynamic_product(r, node)
            or weight_only_product(r, node)
            or recurrent(r, node)
        )
        if new is not None:
            r.replace(node, new)
    r.clean()
    notes = {node.name: f"runs in float32: {why}" for node, why in _in_float32(r)}
    _dequantize_constants(r)
    _once(r)
    join_products(r)
    fuse_residuals(r)
    return notes


def recurrent(r: Rewriter, node: Node) -> Node | None:
    """A call in place of recurrent layers, if their sequence and weights are quantised."""
    layer = recurrence_of(node)
    if layer is None:
        return None
    weights = recurrent_weights(node, r.data, of_bytes=layer.x.target is calls.dequantize)
    if weights is None:
        return None
    args = arguments(node)
    integers = dict(zip(layer.matrices, (one.node for one in weights), strict=True))
    args["input"] = rows_of(layer.x) or layer.x
    args["params"] = [integers.get(one, one) for one in args["params"]]
    new = r.call(node, calls.recurrent, node.target, tuple(weights), args, shape=())
    new.meta["val"] = node.meta["val"]
    return new


def _in_float32(r: Rewriter) -> Iterator[tuple[Node, str]]:
    for node in r.graph.nodes:
        if not any(one.target is calls.dequantize for one in node.all_input_nodes):
            continue
        if isinstance(node.target, OpOverload) and not name_of(node):
            yield node, why_not_integer(r, node)


def _name_bytes(r: Rewriter) -> None:
    """Replace quantising and dequantising calls with constant parameters by calls on bytes."""
    made: dict[Node, Node] = {}  # the bytes that integers are
    for node in list(r.graph.nodes):
        quantization = read(node, r.data)
        if quantization is None:
            continue
        source: Any = node.args[0]
        if quantizes(node):
            new = r.call(
                node,
                calls.quantize,
                source,
                quantization,
                shape=traced_shape(node),
                dtype=torch.uint8,
            )
            made[node] = new
            continue
        users = list(_not_as_weights(r, node))
        if not users:
            continue
        if source not in made:
            made[source] = _bytes_of(r, node, source)
        new = r.call(node, calls.dequantize, made[source], quantization, shape=traced_shape(node))
        for user in users:
            user.replace_input_with(node, new)
    for node, new in made.items():
        if name_of(node) == "quantize_per_tensor":
            node.replace_all_uses_with(_as_torch_has_it(r, node, new))
    r.clean()


def _not_as_weights(r: Rewriter, node: Node) -> Iterator[Node]:
    """The users of a dequantised value, except those that read constant weights or a bias."""
    is_constant = dequantizes_constant(node, r.data)
    for user in list(node.users):
        layer = recurrence_of(user) if is_constant else None
        if layer is not None and node in layer.matrices:
            continue
        operands = operands_of(user) if is_constant else None
        if operands is None or node not in (operands.weight, operands.bias):
            yield user


def _bytes_of(r: Rewriter, before: Node, integers: Node) -> Node:
    """Integers as bytes."""
    if integers.meta["val"].dtype == torch.uint8:
        return integers
    data = r.data(integers)
    if data is not None:
        return r.constant((integers, "bytes"), (data.to(torch.int16) + 128).to(torch.uint8))
    return r.call(before, calls.flip, integers, shape=traced_shape(integers), dtype=torch.uint8)


def _as_torch_has_it(r: Rewriter, node: Node, bytes_: Node) -> Node:
    """Bytes in the dtype of the quantising call that they replace."""
    if node.meta["val"].dtype == torch.uint8 or not node.users:
        return bytes_
    after = bytes_.next
    return r.call(
        after, calls.flip, bytes_, shape=traced_shape(node), dtype=torch.int8, replaced=[node]
    )


def _dequantize_constants(r: Rewriter) -> None:
    """Dequantise constants that no call on bytes reads."""
    for node in list(r.graph.nodes):
        if dequantizes_constant(node, r.data):
            data = constant_of(node, r.data)
            assert data is not None
            r.replace(node, r.constant((node, "numbers"), data))
    r.clean()


def _once(r: Rewriter) -> None:
    """Merge equal conversions into one."""
    seen: dict[Any, Node] = {}
    for node in list(r.graph.nodes):
        if node.target in _CONVERTING:
            same = seen.setdefault((node.target, *node.args), node)
            if same is not node:
                r.replace(node, same)
    r.clean()
