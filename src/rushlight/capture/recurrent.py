"""Recurrent layers as single operators: which they are, their sizes, and their parameters.

torch knows no more of their results than what it gets by unrolling them, which fixes the length of
the sequence. While `whole_recurrence` is active their results' sizes are computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.ir.operators import arguments

aten = torch.ops.aten

LAYERS: dict[OpOverload, str] = {
    aten.lstm.input: "lstm",
    aten.gru.input: "gru",
    aten.rnn_tanh.input: "rnn_tanh",
    aten.rnn_relu.input: "rnn_relu",
}
"""The operators, and the kind of each."""

_UNROLLING = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)
"""By which keys torch has the rules that unroll them."""


def _results(x: Tensor, hx: Sequence[Tensor], bidirectional: bool) -> tuple[Tensor, ...]:
    width = hx[0].shape[-1] * (2 if bidirectional else 1)
    states = (h.new_empty(h.shape) for h in hx)
    return (x.new_empty((*x.shape[:-1], width)), *states)


def _lstm(x: Tensor, hx: Sequence[Tensor], params: Any, *options: Any) -> tuple[Tensor, ...]:
    return _results(x, hx, options[4])


def _other(x: Tensor, hx: Tensor, params: Any, *options: Any) -> tuple[Tensor, ...]:
    return _results(x, [hx], options[4])


@contextmanager
def whole_recurrence() -> Iterator[None]:
    """While active, recurrent layers are traced as one call, whatever their sequence's length.

    One thread at a time: tables of torch's are changed.
    """

    with ExitStack() as stack:
        for target in LAYERS:
            rule = _lstm if target is aten.lstm.input else _other
            stack.enter_context(mock.patch.dict(decomposition_table, {target: rule}))
            stack.enter_context(_ruled(target, rule))
        yield


@contextmanager
def _ruled(target: OpOverload, rule: Callable[..., Any]) -> Iterator[None]:
    """While active, an operator that torch unrolls by a rule in Python has another rule."""
    rules = {key: rule for key in _UNROLLING if key in target.py_kernels}
    try:
        with mock.patch.dict(target.py_kernels, rules):
            target._dispatch_cache.clear()
            yield
    finally:
        target._dispatch_cache.clear()


@dataclass(frozen=True)
class Parameters:
    """The parameters of one layer in one direction; None for those that it does not have."""

    input: Any
    hidden: Any
    input_bias: Any
    hidden_bias: Any
    projection: Any


@dataclass(frozen=True)
class Recurrence:
    """A call of one of the operators.

    Attributes:
        kind: which.
        x: the sequence.
        states: the first hidden state, and of an LSTM the first cell state.
        layers: the parameters of each layer, forward first.
        count: layers, directions apart.
        directions: 1 or 2.
        batch_first: whether the first dimension of sequences is the batch.
        drops: whether elements between layers are dropped, as in training.
    """

    kind: str
    x: Node
    states: tuple[Node, ...]
    layers: tuple[Parameters, ...]
    count: int
    directions: int
    batch_first: bool
    drops: bool

    @property
    def matrices(self) -> list[Any]:
        """The weights of all layers, each with those of its input first."""
        layers = [(one.input, one.hidden, one.projection) for one in self.layers]
        return [one for three in layers for one in three if one is not None]

    @property
    def biases(self) -> list[Any]:
        """The biases of all layers, each with that of its input first."""
        layers = [(one.input_bias, one.hidden_bias) for one in self.layers]
        return [one for pair in layers for one in pair if one is not None]


def recurrence_of(node: Node) -> Recurrence | None:
    """What a call of a recurrent operator has for arguments; None of another node."""
    if node.op != "call_function" or node.target not in LAYERS:
        return None
    return recurrence(node.target, arguments(node))


def recurrence(target: OpOverload, args: Mapping[str, Any]) -> Recurrence:
    """The same of the operator's arguments by name."""
    kind = LAYERS[target]
    states = args["hx"] if kind == "lstm" else [args["hx"]]
    count, directions = args["num_layers"], 2 if args["bidirectional"] else 1
    params = list(args["params"])
    per = len(params) // (count * directions)
    layers = [params[i : i + per] for i in range(0, len(params), per)]
    return Recurrence(
        kind,
        args["input"],
        tuple(states),
        tuple(_parameters(layer, args["has_biases"]) for layer in layers),
        count,
        directions,
        bool(args["batch_first"]),
        bool(args["train"]) and args["dropout"] > 0,
    )


def _parameters(layer: Sequence[Any], has_biases: bool) -> Parameters:
    into, own, *rest = layer
    biases, rest = (rest[:2], rest[2:]) if has_biases else ([None, None], rest)
    return Parameters(into, own, biases[0], biases[1], rest[0] if rest else None)
