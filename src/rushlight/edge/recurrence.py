"""Rewrites recurrent layers as loops, for backends without an operator for them.

Each direction of each layer becomes a `scan` over the sequence. The input's share of the gates is
computed for the whole sequence by one product before the scan (as in Appleyard et al.,
https://arxiv.org/abs/1604.01946).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import linear

from rushlight.capture.recurrent import LAYERS, Parameters, Recurrence, recurrence_of
from rushlight.ir.branches import branches
from rushlight.ir.programs import copy_program

aten = torch.ops.aten

UNROLLED = 8
"""The longest sequence whose layers torch's own rules unroll; longer ones become loops."""

# Takes the state, the input's share of the gates, and the weights; returns the new state, whose
# first tensor is the output.
Cell = Callable[[Sequence[Tensor], Tensor, Sequence[Tensor]], tuple[Tensor, ...]]


def _lstm_cell(
    state: Sequence[Tensor], share: Tensor, weights: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    hidden, memory = state
    gates = share + linear(hidden, weights[0])
    admit, forget, new, show = gates.split(memory.shape[-1], -1)
    memory = torch.sigmoid(forget) * memory + torch.sigmoid(admit) * torch.tanh(new)
    hidden = torch.sigmoid(show) * torch.tanh(memory)
    return (linear(hidden, weights[1]) if len(weights) > 1 else hidden), memory


def _gru_cell(
    state: Sequence[Tensor], share: Tensor, weights: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    (hidden,) = state
    own = linear(hidden, *weights)
    input_reset, input_update, input_new = share.split(hidden.shape[-1], -1)
    own_reset, own_update, own_new = own.split(hidden.shape[-1], -1)
    update = torch.sigmoid(input_update + own_update)
    new = torch.tanh(input_new + torch.sigmoid(input_reset + own_reset) * own_new)
    return (new + update * (hidden - new),)


def _rnn_cell(squash: Callable[[Tensor], Tensor]) -> Cell:
    def cell(
        state: Sequence[Tensor], share: Tensor, weights: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        return (squash(share + linear(state[0], *weights)),)

    return cell


_CELLS: dict[str, Cell] = {
    "lstm": _lstm_cell,
    "gru": _gru_cell,
    "rnn_tanh": _rnn_cell(torch.tanh),
    "rnn_relu": _rnn_cell(torch.relu),
}


def recurrence_to_loops(program: ExportedProgram) -> ExportedProgram:
    """`program` if it has no recurrent layers over more than `UNROLLED` elements of a sequence,
    else a changed copy; tensors are shared."""
    if not any(map(_is_long, _nodes(program.graph_module))):
        return program
    own = copy_program(program)
    for module in (own.graph_module, *branches(own.graph_module)):
        for node in list(module.graph.nodes):
            if _is_long(node):
                _Loops(module, node).replace()
        module.recompile()
    return own


def _nodes(module: GraphModule) -> list[Node]:
    return [node for one in (module, *branches(module)) for node in one.graph.nodes]


def _is_long(node: Node) -> bool:
    layer = recurrence_of(node) if node.target in LAYERS else None
    if layer is None or layer.drops:
        return False
    length = layer.x.meta["val"].shape[1 if layer.batch_first else 0]
    return not isinstance(length, int) or length > UNROLLED


class _Loops:
    """Replaces one call of a recurrent layer by loops."""

    def __init__(self, module: GraphModule, node: Node) -> None:
        self._module = module
        self._graph: Graph = module.graph
        self._node = node

    def replace(self) -> None:
        """Replace the call's results by those of the loops, and erase the call."""
        layer = recurrence_of(self._node)
        assert layer is not None
        with self._graph.inserting_before(self._node):
            results = self._written(layer)
        for user in list(self._node.users):
            result = results[user.args[1]]  # type: ignore[index]
            result.meta["val"] = user.meta["val"]
            user.replace_all_uses_with(result)
            self._graph.erase_node(user)
        self._graph.erase_node(self._node)

    def _call(self, target: Any, *args: Any) -> Node:
        new = self._graph.call_function(target, args)
        new.meta = self._origin()
        return new

    def _origin(self) -> dict[str, Any]:
        """The call's metadata apart from its value: the Python line that it comes from."""
        return {key: value for key, value in self._node.meta.items() if key != "val"}

    def _written(self, layer: Recurrence) -> list[Node]:
        x: Node = layer.x
        if layer.batch_first:
            x = self._call(aten.transpose.int, x, 0, 1)
        finals: list[list[Node]] = [[] for _ in layer.states]
        for first in range(0, len(layer.layers), layer.directions):
            outputs = []
            for at in range(first, first + layer.directions):
                state = [self._call(aten.select.int, h, 0, at) for h in layer.states]
                # The states of a scan must not share memory; those of the model may.
                state[1:] = [self._call(aten.clone.default, one) for one in state[1:]]
                reverse = at > first
                last, out = self._direction(layer.kind, layer.layers[at], x, state, reverse)
                outputs.append(out)
                for parts, one in zip(finals, last, strict=True):
                    parts.append(one)
            x = self._call(aten.cat.default, outputs, -1) if len(outputs) > 1 else outputs[0]
        if layer.batch_first:
            x = self._call(aten.transpose.int, x, 0, 1)
        return [x, *(self._call(aten.stack.default, parts) for parts in finals)]

    def _direction(
        self, kind: str, params: Parameters, x: Node, state: list[Node], reverse: bool
    ) -> tuple[list[Node], Node]:
        """One layer in one direction: the state after it, and its outputs (length, batch, size)."""
        bias, weights = params.input_bias, [params.hidden]
        if bias is not None and kind == "gru":
            weights.append(params.hidden_bias)  # separate: the reset gate multiplies a part of it
        elif bias is not None:
            bias = self._call(aten.add.Tensor, bias, params.hidden_bias)
        if params.projection is not None:
            weights.append(params.projection)
        share = self._call(aten.linear.default, x, params.input, bias)
        if reverse:
            share = self._call(aten.flip.default, share, [0])
        scan = torch.ops.higher_order.scan
        both = self._call(scan, self._body(kind, weights, state), state, [share], tuple(weights))
        *last, out = (self._call(operator.getitem, both, i) for i in range(len(state) + 1))
        return last, self._call(aten.flip.default, out, [0]) if reverse else out

    def _body(self, kind: str, weights: list[Any], state: list[Node]) -> Node:
        """A node that names the graph of the loop's body, which holds for any batch size."""
        cell = _CELLS[kind]

        def body(*args: Tensor) -> list[Tensor]:
            own, share, rest = args[: len(state)], args[len(state)], args[len(state) + 1 :]
            new = cell(own, share, rest)
            return [*(s.clone() for s in new), new[0].clone()]

        vals = [weight.meta["val"] for weight in weights]
        gates, outputs = vals[0].shape
        units = vals[-1].shape[1] if len(state) > 1 and len(vals) > 1 else outputs
        dtype = vals[0].dtype
        examples = [
            *(torch.empty(2, size, dtype=dtype) for size in (outputs, units)[: len(state)]),
            torch.empty(2, gates, dtype=dtype),
            *(torch.empty(tuple(val.shape), dtype=dtype) for val in vals),
        ]
        module = make_fx(body, tracing_mode="fake", pre_dispatch=True)(*examples)
        for node in module.graph.nodes:
            node.meta = {**node.meta, **self._origin()}
        name = f"recurrence_{len(self._graph.nodes)}"
        self._module.add_submodule(name, module)
        return self._graph.get_attr(name)
