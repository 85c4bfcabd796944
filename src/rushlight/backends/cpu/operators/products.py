"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.sizes import at_most_one, same, shape_of
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.operators.facts import PREPARED
from rushlight.ir.operators import arguments
from rushlight.partition.operators import Operator, needs_constants, val_of
from rushlight.schema import cpu_engine as fb

aten = torch.ops.aten


def _product(b: Builder, x: View, matrix: View, bias: View | None, columns: int) -> View:
    rows = b.rows(x)
    out = b.new([*x.shape[:-1], columns])
    b.emit(fb.Product(), [rows, matrix, bias], [b.rows(out)])
    return out


def _linear(b: Builder, node: Node) -> View:
    args = arguments(node)
    weight = b.data(args["weight"])
    assert weight is not None
    matrix = b.linear_weight(args["weight"])
    bias = b.bias(args["bias"])
    return _product(b, b.value(args["input"]), matrix, bias, weight.shape[0])


def _mm_constant(b: Builder, x: Any, weight: Any, bias: Any) -> View:
    data = b.data(weight)
    assert data is not None
    return _product(b, b.value(x), b.matrix(weight), b.bias(bias), data.shape[1])


def _addmm(b: Builder, node: Node) -> View:
    args = arguments(node)
    return _mm_constant(b, args["mat1"], args["mat2"], args["self"])


def _addmm_why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    args = arguments(node)
    if args["beta"] != 1 or args["alpha"] != 1:
        return "its alpha or beta is not 1, which the engine's addmm needs"
    if val_of(args["self"]).dim() != 1 or val_of(args["self"]).shape[0] != val_of(node).shape[1]:
        return "its bias is not one number for each column"
    return needs_constants("self", "mat2", because=PREPARED)(node, is_constant)


def _mm(b: Builder, node: Node) -> View:
    x, weight = node.args
    if b.data(weight) is not None:
        return _mm_constant(b, x, weight, None)
    out = b.new(shape_of(node))
    one, other, result = (
        v.moved(v.meta.unsqueeze(0))
        for v in (b.value(x), b.value(weight), out)  # type: ignore[arg-type]
    )
    _batch_product(b, one, other, result)
    return out


def _bmm(b: Builder, node: Node) -> View:
    out = b.new(shape_of(node))
    one, other = (b.value(arg) for arg in node.args)  # type: ignore[arg-type]
    _batch_product(b, one, other, out)
    return out


def _batch_product(b: Builder, one: View, other: View, out: View) -> None:
    if not at_most_one(one.shape[2]) and not same(one.meta.strides[2], 1):
        one = b.dense(one)
    b.emit(fb.BatchProduct(), [one, other], [out])


OPERATORS = {
    aten.linear.default: Operator(_linear, needs_constants("weight", "bias", because=PREPARED)),
    aten.addmm.default: Operator(_addmm, _addmm_why_not),
    aten.mm.default: Operator(_mm),
    aten.bmm.default: Operator(_bmm),
}
