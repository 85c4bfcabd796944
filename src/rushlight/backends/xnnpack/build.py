"""Builds the payload's nodes from a partition: values, their dim orders, constants."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.fx.node import map_arg

from rushlight.backends.xnnpack.constants import (
    XNN_VALUE_FLAG_EXTERNAL_INPUT,
    XNN_VALUE_FLAG_EXTERNAL_OUTPUT,
)
from rushlight.backends.xnnpack.graph import (
    DATATYPES,
    NHWC,
    UNLIMITED,
    Elements,
    Order,
    PayloadNode,
    Stored,
    Value,
    dynamic_sizes,
    identity,
    is_one,
    keys_of,
    order_after_view,
)
from rushlight.backends.xnnpack.integers import Arithmetic, IntegerValues, is_quantizing
from rushlight.backends.xnnpack.weights import Product, bias_of, scale_of
from rushlight.ir.quantized_values import Affine, affine_of, dequantizes
from rushlight.ir.spec import dim_order_of
from rushlight.schema import xnnpack as fb

aten = torch.ops.aten

Translate = Callable[["Builder", Node], Any]

# Calls whose results can be clamped by clamping their inputs.
_PASSING_LIMITS = frozenset(
    {
        aten.alias_copy.default,
        aten.permute_copy.default,
        aten.squeeze_copy.dim,
        aten.squeeze_copy.dims,
        aten.transpose_copy.int,
        aten.unsqueeze_copy.default,
        aten.view_copy.default,
        operator.getitem,
    }
)
_LIMITED = (
    *(fb.FullyConnected, fb.Convolution, fb.Pooling, fb.GlobalAvgPooling2d, fb.Clamp),
    *(fb.Add, fb.Subtract, fb.Multiply, fb.Div),
)
"""The payload's nodes that can clamp their results."""
_MOVING = (fb.StaticReshape, fb.StaticTranspose)


class Builder:
    """Builds the payload's graph of one partition.

    Args:
        program: the partition.
        translate: for each operator, the function that adds the nodes of a call and returns the
            call's value, or a list of values.
        arithmetic: the function that says how a call is computed in integers; None if it is not.

    Attributes:
        integers: the values that are integers.
        nodes: all nodes that the results need, in order.
        arguments: the number of tensors and numbers that the delegate takes and returns.
    """

    def __init__(
        self,
        program: ExportedProgram,
        translate: Mapping[Any, Translate],
        arithmetic: Callable[[Node], Arithmetic | None],
    ) -> None:
        self.nodes: list[PayloadNode] = []
        self.arguments = 0
        self._values: dict[Node, Any] = {}
        self._data: dict[Node, Any] = {}  # tensors, or the tuple of a call with several results
        self._constants: dict[tuple[Any, ...], Stored] = {}
        self._converted: dict[tuple[Any, ...], Stored] = {}
        self._orders: dict[tuple[Stored, Order, tuple[Any, ...]], Value] = {}
        self._shapes: dict[tuple[Stored, tuple[Any, ...]], Stored] = {}
        self._last: dict[Node, PayloadNode] = {}
        self._calls: list[Node] = []
        tensors = {**program.constants, **program.state_dict}
        specs = {s.arg.name: s for s in program.graph_signature.input_specs}
        inputs = []
        for node in program.graph.find_nodes(op="placeholder"):
            if specs[node.name].kind == InputKind.USER_INPUT:
                inputs.append(node)
            else:
                self._data[node] = tensors[str(specs[node.name].target)].detach()
        self.integers = IntegerValues(program.graph, self._data.get, arithmetic)
        for node in inputs:
            self._input(node)
        for node in program.graph.nodes:
            if node.op == "call_function":
                self._call(node, translate)
        returned: Any = program.graph.output_node().args[0]
        outputs = [self._return(node) for node in returned]
        self.nodes = _needed(self.nodes, outputs)

    def _input(self, node: Node) -> None:
        val = node.meta["val"]
        if isinstance(val, torch.Tensor):
            order = dim_order_of(val)
            dims: list[Any] = [val.shape[d] for d in order]
            quantizations = (self.integers.values.get(user) for user in node.users)
            elements = self._elements(val.dtype, next(filter(None, quantizations), None))
            stored = Stored(dims, elements.datatype, None, elements.quantization)
            stored.external, stored.flags = self.arguments, XNN_VALUE_FLAG_EXTERNAL_INPUT
            self._values[node] = Value(stored, tuple(val.shape), order)
        self.arguments += 1

    def _call(self, node: Node, translate: Mapping[Any, Translate]) -> None:
        if isinstance(node.meta["val"], torch.SymInt):
            return  # a size; the shapes of tensors contain it
        if is_quantizing(node):
            self._calls = [node]
            self._quantizing(node)
            return
        inputs = node.all_input_nodes
        if all(n in self._data for n in inputs):
            self._data[node] = self._evaluated(node)
            return
        if node not in self._values:
            self._calls = [node]
            self._values[node] = translate[node.target](self, node)

    def _quantizing(self, node: Node) -> None:
        """Record the value of a quantising or dequantising call.

        It becomes a node only if it quantises computed real numbers.
        """
        affine = affine_of(node)
        if affine is None or affine.chosen is not None:
            return  # the product that uses the rows quantises them
        if dequantizes(node):
            data = self.data(affine.source)
            if data is None:
                self._values[node] = self._values[affine.source]
            elif node in self.integers.values:
                elements = self._elements(torch.int8, affine)
                stored = Stored(list(data.shape), elements.datatype, data, elements.quantization)
                self._values[node] = Value(stored, tuple(data.shape), identity(data.dim()))
            return
        self._values[node] = self.quantized(affine.source, affine)

    def _return(self, node: Node) -> Stored:
        """Make the node's value the delegate's next result."""
        self._calls = [node]
        value = self._known(node)
        stored = self._of_dtype(self.in_order(value, identity(value.rank)), node).stored
        if stored.flags or stored.data is not None:
            stored = self.emit_one(fb.Copy(), stored.dims, stored.elements, input_id=stored)
        stored.external, stored.flags = self.arguments, XNN_VALUE_FLAG_EXTERNAL_OUTPUT
        self.arguments += 1
        return stored

    # --- values ---------------------------------------------------------------------------------

    def data(self, node: Any) -> torch.Tensor | None:
        """The tensor of a constant; None for any other argument."""
        if not isinstance(node, Node):
            return None
        inputs = node.all_input_nodes if dequantizes(node) else [node]
        if node not in self._data and all(n in self._data for n in inputs):
            self._data[node] = self._evaluated(node)
        return self._data.get(node)

    def _evaluated(self, node: Node) -> Any:
        """The result of a call on constants."""
        assert callable(node.target)
        args, kwargs = map_arg((node.args, node.kwargs), self._data.__getitem__)
        return node.target(*args, **kwargs)

    def value(self, node: Any) -> Value:
        """The value of a call or input: integers for a call that is computed in integers."""
        value = self._known(node)
        return value if self._calls[0] in self.integers.values else self._of_dtype(value, node)

    def _known(self, node: Node) -> Value:
        if node in self._values:
            return self._values[node]  # type: ignore[no-any-return]
        data = self.data(node)
        assert data is not None
        return Value(self.constant(data), tuple(data.shape), identity(data.dim()))

    def _of_dtype(self, value: Value, node: Node) -> Value:
        """A call's value, converted to real numbers if it is real in the graph."""
        if value.stored.datatype != fb.Datatype.QINT8 or not node.meta["val"].is_floating_point():
            return value
        return self.converted(value, Elements(DATATYPES[node.meta["val"].dtype]))

    def quantized(self, node: Node, affine: Affine) -> Value:
        """A node's value, quantised as `affine` says."""
        value, elements = self._known(node), self._elements(torch.int8, affine)
        if value.stored.elements == elements:
            return value
        return self.converted(self._of_dtype(value, node), elements)

    def converted(self, value: Value, elements: Elements) -> Value:
        """The same numbers, stored as other elements."""
        return Value(self.stored_as(value.stored, elements), value.shape, value.order)

    def stored_as(self, stored: Stored, elements: Elements) -> Stored:
        """The same numbers, stored as other elements and converted only once."""
        key = (stored, elements.datatype, str(elements.quantization))
        if key not in self._converted:
            made = self.emit_one(fb.Convert(), stored.dims, elements, input_id=stored)
            self._converted[key] = made
        return self._converted[key]

    def elements(self, node: Node) -> Elements:
        """How the elements of a call's result are stored, as integers or as real numbers."""
        val = node.meta["val"]
        result = val if isinstance(val, torch.Tensor) else val[0]
        return self._elements(result.dtype, self.integers.values.get(node))

    def _elements(self, dtype: torch.dtype, quantization: Affine | None) -> Elements:
        if quantization is None:
            return Elements(DATATYPES[dtype])
        scale, zero = (
            scale_of(quantization, self.integers.constant),
            quantization.zero_points(self.integers.constant),
        )
        assert zero is not None
        return Elements(fb.Datatype.QINT8, fb.PerTensorQuant(scale, int(zero)))

    def results(self, node: Node) -> list[Value]:
        """The values of a call with several results."""
        return self._values[node]  # type: ignore[no-any-return]

    def constant(self, data: torch.Tensor, dtype: torch.dtype | None = None) -> Stored:
        """A stored constant; made once for each tensor and order of its dimensions."""
        data = data.to(dtype or data.dtype)
        key = (data.data_ptr(), data.dtype, tuple(data.shape), data.stride())
        if key not in self._constants:
            dims: list[Any] = list(data.shape) or [1]
            self._constants[key] = Stored(dims, DATATYPES[data.dtype], data)
        return self._constants[key]

    def number(self, number: float, dtype: torch.dtype) -> Stored:
        """A stored constant of one element."""
        key = (number, dtype)
        if key not in self._constants:
            data = torch.tensor([number], dtype=dtype)
            self._constants[key] = Stored([1], DATATYPES[dtype], data)
        return self._constants[key]

    def bias(self, product: Product, bias: Node | None) -> Stored | None:
        """The bias of a product with quantised weights."""
        if product.quantization is not None:
            scale = scale_of(product.quantization, self.integers.constant)
            return bias_of(product.weights, scale, bias, self.integers.constant)
        data = self.data(bias)
        return None if data is None else self.constant(data, torch.float32)

    # --- nodes ----------------------------------------------------------------------------------

    def emit(
        self,
        operation: fb.NodeKind,
        outputs: Mapping[str, Stored],
        limits: tuple[float, float] = UNLIMITED,
        **inputs: Stored | None,
    ) -> PayloadNode:
        """Add a payload node for the call that is being translated."""
        payload_node = PayloadNode(operation, inputs, dict(outputs), limits, list(self._calls))
        self.nodes.append(payload_node)
        for stored in outputs.values():
            stored.node = payload_node
        if not isinstance(operation, _MOVING):
            self._last[self._calls[0]] = payload_node
        return payload_node

    def emit_one(
        self,
        operation: fb.NodeKind,
        dims: Sequence[Any],
        elements: Elements,
        limits: tuple[float, float] = UNLIMITED,
        **inputs: Stored | None,
    ) -> Stored:
        """Add a node with one result of these sizes."""
        stored = Stored(list(dims), elements.datatype, quantization=elements.quantization)
        self.emit(operation, {"output_id": stored}, limits, **inputs)
        return stored

    def limited(self, node: Node) -> PayloadNode | None:
        """The payload node that can clamp its results instead of clamping `node`; None if none."""
        while len(node.users) == 1:
            if node in self._last:
                payload_node = self._last[node]
                return payload_node if isinstance(payload_node.operation, _LIMITED) else None
            if node.target not in _PASSING_LIMITS:
                return None
            [node, *_] = node.all_input_nodes
        return None

    def join(self, node: Node, payload_node: PayloadNode) -> None:
        """Record that a payload node also computes a later call."""
        payload_node.calls.append(node)
        self._last[node] = payload_node

    def settle(self, node: Node, value: Any, payload_node: PayloadNode) -> None:
        """Set the value of a call that an earlier payload node computes."""
        self._values[node] = value
        self.join(node, payload_node)

    # --- orders ---------------------------------------------------------------------------------

    def in_order(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its dimensions stored in this order; adds a transposition if needed."""
        order = tuple(order)
        if order == value.order or not order:
            return value
        key = (value.stored, tuple(value.order.index(d) for d in order), keys_of(value.shape))
        if key not in self._orders:
            self._orders[key] = Value(self._moved(value, order), value.shape, order)
        return Value(self._orders[key].stored, value.shape, order)

    def has_order(self, value: Value, order: Sequence[int]) -> bool:
        """Whether `in_order` would add no node that moves elements."""
        perm = tuple(value.order.index(d) for d in order)
        known = (value.stored, perm, keys_of(value.shape)) in self._orders
        return known or value.stored.data is not None or _only_ones_move(value, order)

    def _moved(self, value: Value, order: Order) -> Stored:
        dims = [value.shape[d] for d in order]
        perm = [value.order.index(d) for d in order]
        data = value.stored.data
        if data is not None:
            return self._rearranged(value.stored, data.permute(perm))
        if _only_ones_move(value, order) and dynamic_sizes(dims) <= 1:
            return self.reshaped(value.stored, dims)
        operation = fb.StaticTranspose(len(perm), perm)
        return self.emit_one(operation, dims, value.stored.elements, input_id=value.stored)

    def _rearranged(self, stored: Stored, data: torch.Tensor) -> Stored:
        """A constant with its elements in another order."""
        if stored.quantization is None:
            return self.constant(data)
        return Stored(list(data.shape), stored.datatype, data, stored.quantization)

    def reshaped(self, stored: Stored, dims: Sequence[Any]) -> Stored:
        """The same elements with other sizes, of which one may be dynamic."""
        dims = list(dims)
        while stored.node is not None and isinstance(stored.node.operation, fb.StaticReshape):
            source = stored.node.inputs["input_id"]
            assert source is not None
            stored = source
        if keys_of(dims) == keys_of(stored.dims):
            return stored
        if stored.data is not None:
            return self._rearranged(stored, stored.data.reshape(dims))
        key = (stored, keys_of(dims))
        if key not in self._shapes:
            sizes = [d if isinstance(d, int) else 0 for d in dims]
            operation = fb.StaticReshape(len(sizes), sizes)
            self._shapes[key] = self.emit_one(operation, dims, stored.elements, input_id=stored)
        return self._shapes[key]

    def viewed(self, value: Value, shape: Sequence[Any]) -> Value:
        """The value with other sizes."""
        if keys_of(shape) == keys_of(value.shape):
            return value
        order = order_after_view(value, shape)
        if order is None:
            value = self.in_order(value, identity(value.rank))
            order = identity(len(shape))
        stored = self.reshaped(value.stored, [shape[d] for d in order])
        return Value(stored, tuple(shape), order)

    def images(self, value: Value) -> Stored:
        """A value [N, C, H, W] or [N, C, L] stored as [N, H, W, C] or [N, L, 1, C]."""
        if value.rank == 4:
            return self.in_order(value, NHWC).stored
        batch, channels, length = value.shape
        lines = self.in_order(value, (0, 2, 1)).stored
        return self.reshaped(lines, [batch, length, 1, channels])

    def from_images(self, stored: Stored, shape: Sequence[Any]) -> Value:
        """The opposite of `images`: a tensor stored so, as a value of shape [N, C, …]."""
        if len(shape) == 4:
            return Value(stored, tuple(shape), NHWC)
        lines = self.reshaped(stored, [shape[0], shape[2], shape[1]])
        return Value(lines, tuple(shape), (0, 2, 1))


def _only_ones_move(value: Value, order: Sequence[int]) -> bool:
    """Whether two orders are the same in memory: they differ only in dimensions of size 1."""
    before = [d for d in value.order if not is_one(value.shape[d])]
    return before == [d for d in order if not is_one(value.shape[d])]


def _needed(nodes: Sequence[PayloadNode], outputs: Iterable[Stored]) -> list[PayloadNode]:
    """The nodes that the outputs need, in order."""
    wanted = set(outputs)
    needed = []
    for payload_node in reversed(nodes):
        if not wanted.isdisjoint(payload_node.outputs.values()):
            needed.append(payload_node)
            wanted.update(s for s in payload_node.inputs.values() if s is not None)
    return needed[::-1]
