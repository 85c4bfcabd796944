"""Recurrent layers: a whole stack of them over a sequence is one node of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph import panels as pack
from rushlight.backends.cpu.graph.sizes import at_most_one, same
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.integers import pack as integers
from rushlight.backends.cpu.integers.facts import Weights
from rushlight.capture.recurrent import LAYERS, Recurrence, recurrence, recurrence_of
from rushlight.partition.operators import Operator, val_of
from rushlight.schema import cpu_engine as fb

_CELLS = {
    "lstm": fb.RecurrentCell.LSTM,
    "gru": fb.RecurrentCell.GRU,
    "rnn_tanh": fb.RecurrentCell.RNN_TANH,
    "rnn_relu": fb.RecurrentCell.RNN_RELU,
}


def _why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    layer = recurrence_of(node)
    assert layer is not None
    if layer.drops:
        return "it has dropout between layers, as in training"
    parameters = [*layer.matrices, *layer.biases]
    if not all(map(is_constant, parameters)):
        return "its weights are computed: the engine prepares weights ahead of time"
    if val_of(layer.x).shape[-1] == 0:
        return "the width of its sequence is 0"
    if len({val_of(one).dtype for one in parameters}) > 1:
        return "its weights have several dtypes"
    return None


def _recurrent(b: Builder, node: Node) -> list[View]:
    layer = recurrence_of(node)
    assert layer is not None
    key = tuple(layer.matrices)
    dtype = b.dtype_of(key[0])
    weights = b.constant((*key, "weights"), lambda: _packed(b, layer).to(dtype))
    return _layers(b, layer, _data(b, layer.layers[0].hidden).shape, weights)


def _packed(b: Builder, layer: Recurrence) -> torch.Tensor:
    return torch.cat([pack.panels(_data(b, one).t()) for one in layer.matrices])


def _recurrent_of_bytes(b: Builder, node: Node) -> list[View]:
    """The same with quantised weights."""
    call: Any = node.args
    target, matrices, args = call
    layer = recurrence(target, args)
    key = (*layer.matrices, "bytes")
    weights = b.constant(
        (*key, "weights"), lambda: torch.cat([integers.panels(one.data.t()) for one in matrices])
    )
    scales, shares = (
        b.constant((*key, part), lambda part=part: _joined(part, matrices))  # type: ignore[misc]
        for part in (integers.scales_of, integers.shares_of)
    )
    return _layers(b, layer, matrices[1].data.shape, weights, scales, shares)


def _joined(part: Callable[[Weights], torch.Tensor], matrices: Sequence[Weights]) -> torch.Tensor:
    """What a function gives for each of several matrices, one after the other."""
    return torch.cat([part(one) for one in matrices])


def _layers(
    b: Builder, layer: Recurrence, hidden: Sequence[int], weights: View, *scales: View
) -> list[View]:
    """One node for all layers; `hidden` are the sizes of the first hidden weights."""
    columns, outputs = hidden
    units = columns // {"lstm": 4, "gru": 3}.get(layer.kind, 1)
    x = _rows(b, b.value(layer.x))
    swapped = [1, 0, 2]
    if layer.batch_first:
        x = x.moved(x.meta.permute(swapped))
    order = swapped if layer.batch_first else range(3)  # as the result lies
    out = b.new([*x.shape[:2], layer.directions * outputs], order)
    sizes = [layer.count * layer.directions, x.shape[1]]
    last = [b.new([*sizes, n]) for n in (outputs, units)[: len(layer.states)]]
    states = [_state(b, state) for state in layer.states]
    states += [None] * (2 - len(states))
    bias = None
    if layer.biases:
        bias = b.constant((*layer.biases, "bias"), lambda: _bias(b, layer))
    operation = fb.Recurrent(_CELLS[layer.kind], layer.count, layer.directions == 2, units, outputs)
    b.emit(operation, [x, weights, bias, *states, *scales], [out, *last])
    if layer.batch_first:
        out = out.moved(out.meta.permute(swapped))
    return [out, *last]


def _data(b: Builder, node: Any) -> torch.Tensor:
    data = b.data(node)
    assert data is not None
    return data


def _bias(b: Builder, layer: Recurrence) -> torch.Tensor:
    """Both biases as one, but for the new gate of a GRU, of which the reset gate takes a part."""
    parts: list[torch.Tensor] = []
    for one in layer.layers:
        into, own = (_data(b, bias).float() for bias in (one.input_bias, one.hidden_bias))
        if layer.kind == "gru":
            kept, share = own.split([2 * len(own) // 3, len(own) // 3])
            own = torch.cat([kept, torch.zeros_like(share)])
            parts += [pack.bias(into + own), pack.bias(share)]
        else:
            parts.append(pack.bias(into + own))
    return torch.cat(parts)


def _state(b: Builder, node: Node) -> View | None:
    """A first state in row-major order; None for zeros."""
    if b.is_zero(node):
        return None
    return b.dense(b.value(node))


def _rows(b: Builder, view: View) -> View:
    """A sequence whose elements lie in rows, none of them repeated."""
    meta = view.meta
    repeats = any(
        same(s, 0) and not at_most_one(n) for n, s in zip(meta.shape, meta.strides, strict=True)
    )
    is_row = at_most_one(meta.shape[-1]) or same(meta.strides[-1], 1)
    return view if is_row and not repeats else b.dense(view)


WHOLE: dict[Any, Operator[Builder]] = {target: Operator(_recurrent, _why_not) for target in LAYERS}
"""Those that torch has."""
OPERATORS: dict[Any, Operator[Builder]] = {**WHOLE, calls.recurrent: Operator(_recurrent_of_bytes)}
