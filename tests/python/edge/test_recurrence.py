"""Recurrent layers that no backend takes whole are loops, and equal eager at every length."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from rushlight.capture import capture
from rushlight.capture.recurrent import LAYERS, recurrence_of
from rushlight.edge.recurrence import UNROLLED
from rushlight.edge.to_edge import to_core_aten
from rushlight.ir.branches import branches

KINDS = [
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {"bias": False, "proj_size": 3}),
    ("GRU", {"num_layers": 2}),
    ("GRU", {"bidirectional": True, "bias": False}),
    ("RNN", {"nonlinearity": "tanh"}),
    ("RNN", {"nonlinearity": "relu", "batch_first": True}),
]
TRACED = torch._VF.lstm, torch.ops.aten.lstm.input.py_kernels.copy()


def made(kind: str, **options: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    return getattr(torch.nn, kind)(4, 6, **options).eval()  # type: ignore[no-any-return]


def count(program: torch.export.ExportedProgram, *targets: Any) -> int:
    return sum(n.target in targets for n in program.graph.nodes)


def scans(program: torch.export.ExportedProgram) -> int:
    return count(program, torch.ops.higher_order.scan)


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=str)
def test_equals_eager_at_every_length_and_batch(kind: str, options: dict[str, Any]) -> None:
    layer = made(kind, **options)
    length, batch = Dim("length", min=1, max=20), Dim("batch", min=1, max=8)
    sizes = {0: batch, 1: length} if options.get("batch_first") else {0: length, 1: batch}
    program = capture(layer, (torch.randn(5, 3, 4),), dynamic_shapes=(sizes,))
    assert count(program, *LAYERS) == 1
    core = to_core_aten(program)
    directions = 2 if options.get("bidirectional") else 1
    assert scans(core) == directions * options.get("num_layers", 1)
    module = core.module()
    for shape in ((5, 3, 4), (1, 3, 4), (8, 8, 4)):
        x = torch.randn(shape)
        got, wanted = pytree.tree_leaves(module(x)), pytree.tree_leaves(layer(x))
        for g, w in zip(got, wanted, strict=True):
            torch.testing.assert_close(g, w)


@pytest.mark.parametrize("capture_with", [capture, torch.export.export], ids=["ours", "torch"])
@pytest.mark.parametrize(("kind", "options"), KINDS, ids=str)
def test_only_short_sequences_are_unrolled(
    kind: str, options: dict[str, Any], capture_with: Any
) -> None:
    layer = made(kind, **options)
    for length in (UNROLLED, UNROLLED + 1):
        x = torch.randn(length, length, 4)  # whichever comes first
        core = to_core_aten(capture_with(layer, (x,)))
        assert bool(scans(core)) == (length > UNROLLED)
        got, wanted = pytree.tree_leaves(core.module()(x)), pytree.tree_leaves(layer(x))
        for g, w in zip(got, wanted, strict=True):
            torch.testing.assert_close(g, w)


def test_layers_may_follow_one_another() -> None:
    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = made("GRU"), torch.nn.LSTM(6, 6)

        def forward(self, x: torch.Tensor) -> Any:
            y, last = self.first(x)
            return self.second(y, (last, last))

    model, x = Both().eval(), torch.randn(9, 3, 4)
    core = to_core_aten(capture(model, (x,)))
    assert scans(core) == 2
    for g, w in zip(
        pytree.tree_leaves(core.module()(x)), pytree.tree_leaves(model(x)), strict=True
    ):
        torch.testing.assert_close(g, w)


def test_a_program_that_is_lowered_stays_as_it_was() -> None:
    program = capture(made("GRU"), (torch.randn(9, 3, 4),))
    before = str(program.graph)
    to_core_aten(program)
    assert str(program.graph) == before


def test_torch_has_its_own_rules_after_a_capture() -> None:
    capture(made("LSTM"), (torch.randn(5, 3, 4),))
    assert (torch._VF.lstm, torch.ops.aten.lstm.input.py_kernels) == TRACED


def test_layers_inside_of_branches_are_loops() -> None:
    class Branches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = torch.nn.ParameterList(made("RNN", bias=False).parameters())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            start = x.new_zeros(1, 3, 6)

            def layer(x: torch.Tensor) -> torch.Tensor:
                into, own = self.weights
                return torch.rnn_tanh(x, start, [into, own], False, 1, 0.0, False, False, False)[0]

            return torch.cond(x.sum() > 0, lambda x: layer(x) + 1, lambda x: layer(x) * 2, (x,))

    model = Branches()
    core = to_core_aten(capture(model, (torch.randn(9, 3, 4),)))
    assert scans(core) == 0 and sum(map(holds_scan, branches(core.graph_module))) == 2
    for x in (torch.rand(9, 3, 4), -torch.rand(9, 3, 4)):
        torch.testing.assert_close(core.module()(x), model(x))


def holds_scan(module: torch.fx.GraphModule) -> bool:
    return any(n.target is torch.ops.higher_order.scan for n in module.graph.nodes)


def test_parameters_are_told_apart() -> None:
    layer = made("LSTM", num_layers=2, bidirectional=True, proj_size=3)
    program = capture(layer, (torch.randn(5, 3, 4),))
    [node] = [n for n in program.graph.nodes if n.target in LAYERS]
    recurrence = recurrence_of(node)
    assert recurrence is not None and (recurrence.count, recurrence.directions) == (2, 2)
    shapes = [tuple(one.meta["val"].shape) for one in recurrence.matrices]
    assert shapes == [(24, 4), (24, 3), (3, 6)] * 2 + [(24, 6), (24, 3), (3, 6)] * 2
    assert [tuple(one.meta["val"].shape) for one in recurrence.biases] == [(24,)] * 8
