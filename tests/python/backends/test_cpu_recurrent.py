"""Recurrent layers are one operator of the engine, and equal eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

import rushlight as rl
from rushlight.schema import cpu_engine as fb

LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm": ("LSTM", {}),
    "lstm_stacked_both_ways": (
        "LSTM",
        {"num_layers": 3, "bidirectional": True, "batch_first": True, "dropout": 0.5},
    ),
    "lstm_projected": ("LSTM", {"num_layers": 2, "proj_size": 5, "bidirectional": True}),
    "lstm_without_bias": ("LSTM", {"num_layers": 2, "bias": False, "proj_size": 3}),
    "gru": ("GRU", {"num_layers": 2}),
    "gru_both_ways": ("GRU", {"bidirectional": True, "batch_first": True}),
    "gru_without_bias": ("GRU", {"bias": False}),
    "rnn_tanh": ("RNN", {"num_layers": 2, "bidirectional": True}),
    "rnn_relu": ("RNN", {"nonlinearity": "relu", "bias": False}),
}
KINDS = ("LSTM", "GRU", "RNN")


def made(kind: str, width: int, units: int, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    return getattr(nn, kind)(width, units, **options).eval()  # type: ignore[no-any-return]


def payload_of(program: Any) -> fb.Graph:
    [payload] = program.manager.payloads
    return fb.unpack(payload)


def check(program: Any, model: nn.Module, *inputs: Any, tolerance: float = 1e-5) -> None:
    """Run a program and its model, and compare all results."""
    with torch.no_grad():
        wanted = pytree.tree_leaves(model(*inputs))
    got = pytree.tree_leaves(rl.load(program.buffer)(*inputs))
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(
            torch.as_tensor(one), other, atol=tolerance, rtol=tolerance, check_stride=False
        )


def only_step(program: Any) -> fb.Recurrent:
    """The one step of a program whose one instruction calls the engine."""
    [step] = payload_of(program).steps
    assert isinstance(step.operation, fb.Recurrent)
    assert program.report.methods["forward"].instructions == 1
    return step.operation


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("batch", "units"), [(1, 17), (3, 32)])
def test_equals_eager(name: str, batch: int, units: int) -> None:
    kind, options = LAYERS[name]
    layer = made(kind, 10, units, **options)
    shape = (batch, 12, 10) if options.get("batch_first") else (12, batch, 10)
    x = torch.randn(shape)
    program = rl.export(layer, (x,), backend="cpu")
    check(program, layer, x)
