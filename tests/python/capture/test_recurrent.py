"""Recurrent layers whose sequence length varies become scans that equal eager at every length."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from rushlight.capture import capture
from rushlight.edge.to_edge import to_core_aten

KINDS = [
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {"bias": False, "proj_size": 3}),
    ("GRU", {"num_layers": 2}),
    ("GRU", {"bidirectional": True, "bias": False}),
    ("RNN", {"nonlinearity": "tanh"}),
    ("RNN", {"nonlinearity": "relu", "batch_first": True}),
]


def scans(program: torch.export.ExportedProgram) -> int:
    return sum(n.target is torch.ops.higher_order.scan for n in program.graph.nodes)


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=lambda v: str(v))
def test_equals_eager_at_every_length_and_batch(kind: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(4, 6, **options).eval()
    length, batch = Dim("length", min=1, max=20), Dim("batch", min=1, max=8)
    sizes = {0: batch, 1: length} if options.get("batch_first") else {0: length, 1: batch}
    program = capture(layer, (torch.randn(5, 3, 4),), dynamic_shapes=(sizes,))
    directions = 2 if options.get("bidirectional") else 1
    assert scans(program) == directions * options.get("num_layers", 1)
    module = to_core_aten(program).module()
    for shape in ((5, 3, 4), (1, 3, 4), (8, 8, 4)):
        x = torch.randn(shape)
        got, wanted = pytree.tree_leaves(module(x)), pytree.tree_leaves(layer(x))
        for g, w in zip(got, wanted, strict=True):
            torch.testing.assert_close(g, w)


def test_a_fixed_length_is_captured_as_ever() -> None:
    batch = Dim("batch", min=1, max=8)
    layer = torch.nn.LSTM(4, 6).eval()
    program = capture(layer, (torch.randn(5, 3, 4),), dynamic_shapes=({1: batch},))
    assert scans(program) == 0
    assert torch._VF.lstm is torch._C._VariableFunctions.lstm
