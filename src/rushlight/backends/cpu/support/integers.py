"""Quantised calls: which the engine takes, and why it does not take others."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.backends.cpu.integers.facts import (
    CHOOSE,
    Operands,
    constant_of,
    group_size_of,
    is_static,
    is_transposed,
    operands_of,
    read,
    recurrent_weights,
    rows_of,
    weights_of,
)
from rushlight.backends.cpu.patterns.integers.products import (
    why_not_dynamic,
    why_not_grouped,
    why_not_summed,
    why_not_weight_only,
)
from rushlight.capture.recurrent import recurrence_of
from rushlight.ir.operators import arguments
from rushlight.ir.quantized_values import (
    Constant,
    affine_of,
    chosen_of,
    dequantizes,
    dequantizes_constant,
    name_of,
    quantizes,
)
from rushlight.partition.operators import val_of
from rushlight.partition.partitioner import TAG
from rushlight.partition.tags import graphs_of

aten = torch.ops.aten


def why_not_quantized(node: Node, data: Constant) -> str | None:
    """Why a call that quantises, dequantises or chooses parameters is not taken.

    Args:
        node: the call.
        data: constants of the program.
    """
    if dequantizes_constant(node, data):
        return _why_not_constant(node, data)
    if name_of(node) in CHOOSE:
        picked = [user for user in node.users if user.target is operator.getitem]
        quantizing = [u for one in picked for u in one.users if quantizes(u)]
        reasons = [_why_not_at_run(user, data) for user in quantizing]
        return (
            next(filter(None, reasons), None)
            if reasons
            else "no call quantises with its scale and zero point"
        )
    affine = affine_of(node)
    if affine is None or affine.axis is not None:
        return f"the engine has no {node.target}"
    is_known = all(data(one) is not None for one in node.all_input_nodes[1:])
    if affine.per == "tensor" and is_known:
        return _why_not_known(node, data)
    return _why_not_at_run(node, data) if quantizes(node) else _why_not_rows(node, data)


def _why_not_known(node: Node, data: Constant) -> str | None:
    """Why a call that quantises or dequantises by constants is not taken."""
    args = arguments(node)
    if args["dtype"] not in (torch.int8, torch.uint8):
        return f"its integers are {_name(args['dtype'])}; the engine's are int8 and uint8"
    if read(node, data) is None:
        return "its scale is not a positive float32, or its zero point is beyond its integers"
    numbers = node if dequantizes(node) else node.args[0]
    dtype = val_of(numbers).dtype
    return None if dtype == torch.float32 else f"its numbers are {_name(dtype)}, not float32"


def _why_not_at_run(node: Node, data: Constant) -> str | None:
    """Why a call that quantises with parameters computed at run time is not taken."""
    users = list(node.users)
    if not users:
        return "nothing uses its result"
    return next(filter(None, (_why_not_rows(user, data) for user in users)), None)


def _why_not_rows(node: Node, data: Constant) -> str | None:
    """Why a call that dequantises rows quantised at run time is not taken."""
    if rows_of(node) is None:
        return "the engine quantises at run time only rows, each with a scale and a zero point"
    for user in node.users:
        layer = recurrence_of(user)
        if layer is not None and layer.x is node and recurrent_weights(user, data) is not None:
            continue
        operands = operands_of(user)
        if operands is None or operands.x is not node:
            return "the engine quantises at run time only inputs of products with quantised weights"
        reason = why_not_product(user, operands, data)
        if reason is not None:
            return reason
    return None


def why_not_rounded(node: Node, data: Constant) -> str | None:
    """Why a call that rounds rows in groups is not taken."""
    for user in node.users:
        operands = operands_of(user)
        if operands is None or not dequantizes_constant(operands.weight, data):
            return "the engine rounds rows in groups only for products with quantised weights"
        reason = why_not_product(user, operands, data)
        if reason is not None:
            return reason
    return None


def _why_not_constant(node: Node, data: Constant) -> str | None:
    for user in node.users:
        layer = recurrence_of(user)
        if layer is not None and node in layer.matrices:
            continue  # it may be computed in float32
        operands = operands_of(user)
        if operands is None or node not in (operands.weight, operands.bias):
            if is_static(node, data) and val_of(node.args[0]).dtype in (torch.int8, torch.uint8):
                continue
            return f"{user.name} does not use it as the weight or bias of a product"
        if node is operands.weight:
            reason = why_not_product(user, operands, data)
            if reason is not None:
                return reason
    return None


def why_not_product(node: Node, operands: Operands, data: Constant) -> str | None:
    """Why a product with quantised weights is not taken."""
    if operands.bias is not None and constant_of(operands.bias, data) is None:
        return "its bias is computed: the engine prepares weights ahead of time"
    weights = weights_of(operands.weight, data, columns=operands.columns)
    is_image = node.target is aten.convolution.default
    if is_static(operands.x, data):
        if weights is None or weights.group_size or is_transposed(node):
            return None  # it is computed in float32
        return why_not_summed(weights)
    row_group_size = group_size_of(operands.x)
    is_rows = rows_of(operands.x) is not None or row_group_size is not None
    if is_image and not is_rows:
        return "its weights are quantised and its input is not: the engine has no such convolution"
    if is_image:
        return "the engine quantises rows at run time, not images"
    if weights is None:
        return (
            "its weights are not int8 with a float32 scale for each column or group and no zero "
            "points, dequantised to float32"
        )
    if row_group_size is not None:
        return why_not_grouped(weights, row_group_size)
    return why_not_dynamic(weights) if is_rows else why_not_weight_only(weights)


def cut_patterns(program: ExportedProgram, data: Constant) -> dict[Node, str]:
    """The tagged calls whose pattern is split between partitions, and the reason."""
    reason = "what quantises its operands would be in another partition"
    cut: dict[Node, None] = {}
    for module in graphs_of(program):
        for node in module.graph.nodes:
            x, weights = _multiplied(node, data) if TAG in node.meta else (None, [])
            if not weights:
                continue
            rows = _rows(x)
            tags = {one.meta.get(TAG) for one in (node, *weights, *rows)}
            if len(tags) > 1:
                cut.update(dict.fromkeys((node, *rows, *weights)))
    # Weights stay in a partition with those of their products that are there.
    for node in [one for one in cut if dequantizes_constant(one, data)]:
        if any(u not in cut and TAG in u.meta for u in node.users):
            del cut[node]
    return {node: reason for node in cut if TAG in node.meta}


def _multiplied(node: Node, data: Constant) -> tuple[Any, list[Any]]:
    """What a call multiplies with weights that are dequantised, and these."""
    operands, layer = operands_of(node), recurrence_of(node)
    weights = [] if operands is None else [operands.weight]
    weights = weights if layer is None else layer.matrices
    x = layer.x if layer is not None else operands and operands.x
    return x, [one for one in weights if dequantizes_constant(one, data)]


def _rows(x: Any) -> list[Node]:
    """The calls that quantise a value by rows at run time, and dequantise it; [] if none do."""
    if group_size_of(x) is not None:
        return [x]
    chosen = chosen_of(x) if rows_of(x) is not None else None
    calls = () if chosen is None else chosen.calls
    return [call for call in calls if call.target is not operator.getitem]


def keep_together(program: ExportedProgram) -> None:
    """Move dequantising calls to the partition that uses their results, so that it gets bytes."""
    for module in graphs_of(program):
        for node in reversed(list(module.graph.nodes)):
            if TAG not in node.meta or not dequantizes(node):
                continue
            tags = {user.meta.get(TAG) for user in node.users}
            if len(tags) == 1 and None not in tags:
                node.meta[TAG] = tags.pop()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
