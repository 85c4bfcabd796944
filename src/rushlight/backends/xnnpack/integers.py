"""Finds the calls that XNNPACK computes in integers.

A call is computed in integers if all its inputs are dequantised and its result is quantised. The
quantising and dequantising calls around it then only give scales and zero points. Calls that return
elements of their input return integers. Where this pattern is incomplete, an additional node
converts integers to real numbers. Only products are not taken then, because real weights would take
four times the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

import torch
from torch.fx import Graph, Node

from rushlight.backends.xnnpack.weights import (
    Product,
    Weights,
    layer_of,
    rows_of,
    scale_of,
    weights_of,
    why_not_bias,
    why_not_result,
    why_not_scales,
)
from rushlight.ir.quantized_values import (
    Affine,
    Constant,
    affine_of,
    chooses,
    dequantizes,
    quantizes,
)

aten = torch.ops.aten

_INT8 = (torch.int8, -128, 127)
_CHOSEN = (
    "a value that is quantised at run time may only be the input of `linear` or of a convolution"
)
_OTHERS = "its integers stand for other numbers elsewhere"
_CONSTANT = "it dequantises a constant for a call that XNNPACK does not compute in integers"
_PRODUCTS = (aten.linear.default, aten.convolution.default)


class Arithmetic(Enum):
    """How XNNPACK computes a call in integers.

    KEEPS: each result is one of the input's integers, or the integer for zero.
    LIMITS: the input's integers are clamped, by the node that computes them or by another one.
    COMPUTES: the results may have another scale and zero point than the inputs.
    COMPUTES_ALIKE: the results must have the scale and zero point of the inputs.
    """

    KEEPS = auto()
    LIMITS = auto()
    COMPUTES = auto()
    COMPUTES_ALIKE = auto()


def is_quantizing(node: Node) -> bool:
    """Whether a call only quantises, dequantises, or chooses a scale and a zero point."""
    return chooses(node) or quantizes(node) or dequantizes(node)


class IntegerValues:
    """The values of a graph that are computed in integers.

    Args:
        graph: of the Edge dialect.
        constant: the program's constants.
        arithmetic: the function that says how a call is computed in integers; None if it is not.
        why_not: the function that gives the reason why a call is not taken, in integers or not;
            None if it is.

    Attributes:
        values: {node: the quantisation of its value}.
        products: the products with quantised weights.
        reasons: for calls that quantise, dequantise or have quantised weights and are not taken,
            the reason.
    """

    def __init__(
        self,
        graph: Graph,
        constant: Constant,
        arithmetic: Callable[[Node], Arithmetic | None],
        why_not: Callable[[Node], str | None] = lambda node: None,
    ) -> None:
        self.values: dict[Node, Affine] = {}
        self.products: dict[Node, Product] = {}
        self.reasons: dict[Node, str] = {}
        self.constant = constant
        self._arithmetic = arithmetic
        self._why_not = why_not
        for node in graph.nodes:
            if node.op == "call_function":
                self._look(node)
        self._drop_shared()
        self._drop_constants()
        for product in self.products.values():
            for node in product.calls:
                self.reasons.pop(node, None)

    def groups(self) -> list[list[Node]]:
        """The calls that must stay together: each product and the quantising calls around it."""
        return [[*product.calls, node] for node, product in self.products.items()]

    def _look(self, node: Node) -> None:
        if is_quantizing(node):
            self._look_at_integers(node)
            return
        weights = None
        if node.target in _PRODUCTS:
            weights = weights_of(node, node.args[1], self.constant)
        if weights is not None:
            product = weights if isinstance(weights, str) else self._product(node, weights)
            if isinstance(product, str):
                reason = f"{layer_of(node)}: {product}"
                self.reasons[node] = self.reasons[node.args[1]] = reason  # type: ignore[index]
            else:
                self.products[node] = product
            return
        quantization = self._quantization_of(node)
        if quantization is not None:
            self.values[node] = quantization

    def _look_at_integers(self, node: Node) -> None:
        affine = affine_of(node)
        if chooses(node) or (affine is not None and affine.chosen is not None):
            self.reasons[node] = _CHOSEN
            return
        reason = why_not_values(affine, self.constant, quantizes(node))
        if affine is not None and dequantizes(node) and reason is None:
            reason = self._why_not_source(affine)
            if reason is None:
                self.values[node] = affine
        if reason is not None:
            self.reasons[node] = reason

    def _why_not_source(self, affine: Affine) -> str | None:
        """The reason against a dequantising call: all readers of its integers must use the same
        scale and zero point, because a tensor has only one of each."""
        if quantizes(affine.source):
            return None if affine.same(affine_of(affine.source)) else _OTHERS
        others = (affine_of(user) for user in affine.source.users)
        return None if all(affine.same(other) for other in others) else _OTHERS

    def _drop_constants(self) -> None:
        """Leave out dequantised constants that no call takes as integers."""
        for node, affine in list(self.values.items()):
            is_constant = dequantizes(node) and self.constant(affine.source) is not None
            if is_constant and all(user not in self.values for user in node.users):
                self.reasons.setdefault(node, _CONSTANT)

    def arithmetic(self, node: Node) -> Arithmetic | None:
        """How a call is computed if its inputs are integers; None if not in integers."""
        kind = self._arithmetic(node)
        return None if kind is None or self._why_not(node) is not None else kind

    def _quantization_of(self, node: Node) -> Affine | None:
        kind = self.arithmetic(node)
        sources = [n for n in node.all_input_nodes if not _is_size(n)]
        quantizations = [self.values.get(n) for n in sources]
        first = quantizations[0] if quantizations else None
        if kind is None or first is None or None in quantizations:
            return None
        if kind is Arithmetic.KEEPS:
            return first if all(first.same(other) for other in quantizations) else None
        result = self.result(node)
        if kind is Arithmetic.COMPUTES_ALIKE and not first.same(result):
            return None
        return result

    def result(self, node: Node) -> Affine | None:
        """How a call's value is quantised, also after calls that keep or clamp it."""
        path = self._to_result(node)
        return affine_of(path[-1]) if path else None

    def _to_result(self, node: Node) -> list[Node]:
        """The calls from this one up to the call that quantises its value; [] if none does."""
        path = []
        while len(node.users) == 1:
            [node] = node.users
            path.append(node)
            if quantizes(node):
                reason = why_not_values(affine_of(node), self.constant, is_clamped=True)
                return path if reason is None else []
            if self.arithmetic(node) not in (Arithmetic.KEEPS, Arithmetic.LIMITS):
                break
        return []

    # --- products -------------------------------------------------------------------------------

    def _product(self, node: Node, weights: Weights) -> Product | str:
        source, weight, bias = (*node.args, None)[:3]
        assert isinstance(source, Node) and isinstance(weight, Node)
        around = [n for n in (weight, bias) if isinstance(n, Node) and dequantizes(n)]
        rows = rows_of(source)
        reason = self._why_not(node) or (self._why_not_rows(node, bias) if rows else None)
        if reason is not None:
            return reason
        if rows is not None:
            return Product(weights, rows[0], None, (*around, *rows[1]), rows[1])
        quantization, path = self.values.get(source), self._to_result(node)
        if quantization is None:
            return "its weights are quantised and its input is not: XNNPACK takes both or neither"
        if not path:
            return (
                "its weights and input are quantised and its result is not: XNNPACK needs all three"
            )
        if weights.group:
            return "its weights have scales for groups, but its input is not quantised at run time"
        scale = scale_of(quantization, self.constant)
        result = affine_of(path[-1])
        assert result is not None
        reason = why_not_bias(weights, scale, bias, self.constant) or why_not_result(
            weights, scale, scale_of(result, self.constant)
        )
        if reason is not None:
            return reason
        self.values[node] = result
        if dequantizes(source):
            around.append(source)
        return Product(weights, source, quantization, (*around, *path))

    def _why_not_rows(self, node: Node, bias: object) -> str | None:
        if isinstance(bias, Node) and self.constant(bias) is None:
            return "its input is quantised at run time, and its bias is not a constant of floats"
        if node.target is aten.linear.default:
            return None
        data = node.args[1].meta["val"]  # type: ignore[union-attr]
        if data.dim() == 4 and (data.shape[1] > 1 or node.args[6]):
            return None
        return (
            "XNNPACK quantises images at run time for dense convolutions over two dimensions only"
        )

    def _drop_shared(self) -> None:
        """Leave out products whose dynamically quantised rows are also read by other calls."""
        while True:
            dynamic = {n: p.rows for n, p in self.products.items() if p.rows}
            inner = {call for rows in dynamic.values() for call in rows} | dynamic.keys()
            shared = [
                n
                for n, rows in dynamic.items()
                if any(u not in inner for c in rows for u in c.users)
            ]
            for node in shared:
                del self.products[node]
                self.reasons[node] = f"{layer_of(node)}: {_CHOSEN}"
            if not shared:
                return


def why_not_values(affine: Affine | None, constant: Constant, is_clamped: bool) -> str | None:
    """The reason why XNNPACK does not take values with this quantisation; None if it does.

    Args:
        affine: the quantisation.
        constant: the program's constants.
        is_clamped: whether the values are quantised, and so clamped to the range of `affine`.
    """
    if affine is None or affine.per != "tensor":
        return "its values have several scales or zero points, and XNNPACK takes one of each"
    limits = (affine.low, affine.high) if is_clamped else _INT8[1:]
    if (affine.dtype, *limits) != _INT8:
        dtype = str(affine.dtype).removeprefix("torch.")
        return (
            f"XNNPACK's integers are int8 from -128 to 127, and these are {dtype} from "
            f"{affine.low} to {affine.high}"
        )
    scales, zero_points = affine.scales(constant), affine.zero_points(constant)
    if scales is None or zero_points is None:
        return "its scale or zero point is computed at run time, and XNNPACK needs constants"
    zero = int(zero_points)
    if not -128 <= zero <= 127:
        return f"its zero point is {zero}, and XNNPACK's are from -128 to 127"
    return why_not_scales(scales)


def _is_size(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.SymInt | int)
