"""LSTM, GRU and RNN over a sequence whose length varies.

torch unrolls a recurrent layer over the length of its example, so `torch.export` fixes that length.
While `scanned_recurrence` is active, a layer whose sequence length is symbolic is captured as a
`scan` over the steps instead; one of fixed length is captured as ever. The input's part of all
gates is one product before the loop (as in Appleyard et al., https://arxiv.org/abs/1604.01946).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.scan import scan
from torch.nn.functional import linear

# From a step's share of the gates, the state and the weights to the new state, output first.
Cell = Callable[[Tensor, Sequence[Tensor], Sequence[Tensor]], tuple[Tensor, ...]]


def _lstm_cell(
    given: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    hidden, memory = state
    gates = given + linear(hidden, weights[0], weights[1] if weights[1].numel() else None)
    admit, forget, new, show = gates.split(memory.shape[-1], -1)
    memory = torch.sigmoid(forget) * memory + torch.sigmoid(admit) * torch.tanh(new)
    hidden = torch.sigmoid(show) * torch.tanh(memory)
    return (linear(hidden, weights[2]) if len(weights) > 2 else hidden), memory


def _gru_cell(
    given: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    (hidden,) = state
    own = linear(hidden, weights[0], weights[1] if weights[1].numel() else None)
    given_reset, given_update, given_new = given.split(hidden.shape[-1], -1)
    own_reset, own_update, own_new = own.split(hidden.shape[-1], -1)
    update = torch.sigmoid(given_update + own_update)
    new = torch.tanh(given_new + torch.sigmoid(given_reset + own_reset) * own_new)
    return ((1 - update) * new + update * hidden,)


def _rnn_cell(squash: Callable[[Tensor], Tensor]) -> Cell:
    def cell(
        given: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        bias = weights[1] if weights[1].numel() else None
        return (squash(given + linear(state[0], weights[0], bias)),)

    return cell


_CELLS: dict[str, Cell] = {
    "lstm": _lstm_cell,
    "gru": _gru_cell,
    "rnn_tanh": _rnn_cell(torch.tanh),
    "rnn_relu": _rnn_cell(torch.relu),
}


def _direction(
    cell: Cell, x: Tensor, state: list[Tensor], weights: Sequence[Tensor], reverse: bool
) -> tuple[list[Tensor], Tensor]:
    """One layer in one direction: the state after it, and its outputs (length, batch, size)."""
    into, own, *rest = weights
    biased = len(rest) >= 2
    given = linear(x, into, rest[0] if biased else None)
    none = x.new_zeros(0)
    kept = [own, rest[1] if biased else none, *(rest[2:] if biased else rest)]

    def step(state: list[Tensor], given: Tensor) -> tuple[list[Tensor], Tensor]:
        new = cell(given, state, kept)
        return [s.clone() for s in new], new[0].clone()

    last, outputs = scan(step, state, given, dim=0, reverse=reverse)
    return list(last), outputs


def _scanned(cell: Cell, x: Tensor, hx: Sequence[Tensor], options: Sequence[Any]) -> Any:
    weights, _, layers, _, _, bidirectional, batch_first = options
    directions = 2 if bidirectional else 1
    per = len(weights) // (layers * directions)
    x = x.transpose(0, 1) if batch_first else x
    finals: list[list[Tensor]] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            state = [h[at] for h in hx]
            mine = weights[at * per : (at + 1) * per]
            last, output = _direction(cell, x, state, mine, reverse=direction == 1)
            finals.append(last)
            outputs.append(output)
        x = torch.cat(outputs, -1) if directions == 2 else outputs[0]
    stacked = [torch.stack(parts) for parts in zip(*finals, strict=True)]
    return (x.transpose(0, 1) if batch_first else x, *stacked)


def _replacement(name: str) -> Callable[..., Any]:
    original = getattr(torch._VF, name)

    def call(x: Tensor, hx: Any, *options: Any) -> Any:
        packed = len(options) != 7 or not isinstance(options[0], list | tuple)
        fixed = packed or isinstance(x.shape[1 if options[6] else 0], int)
        if fixed or (options[4] and options[3] > 0):  # dropout between layers, in training
            return original(x, hx, *options)
        return _scanned(_CELLS[name], x, [hx] if isinstance(hx, Tensor) else hx, options)

    return call


@contextmanager
def scanned_recurrence() -> Iterator[None]:
    """While active, recurrent layers of symbolic length are captured as `scan`.

    `torch.nn.LSTM` and its like call `torch._VF`, and offer no other place to step in.
    """
    for name in _CELLS:
        setattr(torch._VF, name, _replacement(name))
    try:
        yield
    finally:
        for name in _CELLS:
            delattr(torch._VF, name)
