"""reinplace_pass: calls write their first argument where nothing reads it later."""

from __future__ import annotations

import pytest
import torch

import rushlight as rl
from rushlight.edge.operators import edge_operator
from rushlight.errors import ExportValueError
from rushlight.exir.graph_passes.reinplace import reinplace_pass
from rushlight.exir.manager import to_edge

aten = torch.ops.aten


class Chain(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = x + y  # x is an input of the caller's
        b = torch.relu(a)
        c = b + y
        d = torch.exp(c) + y
        return d + y[:1], d, c  # d is read again, and c is returned


class State(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(4))

    def forward(self, at: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        self.state.index_put_((at,), values, accumulate=True)
        return self.state * 2


def targets(program: torch.export.ExportedProgram) -> list[str]:
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function"]


def test_calls_whose_argument_is_not_read_later_write_it() -> None:
    x, y = torch.randn(4), torch.randn(4)
    edge = to_edge(torch.export.export(Chain(), (x, y)))
    wanted = {edge_operator(op) for op in (aten.add.Tensor, aten.relu.default, aten.exp.default)}
    program = reinplace_pass(edge.exported_program(), ops_to_inplace=wanted)
    assert targets(program) == [
        *("aten.add.Tensor", "aten.relu_.default", "aten.add_.Tensor", "aten.exp.default"),
        *("aten.add_.Tensor", "aten.slice_copy.Tensor", "aten.add.Tensor"),
    ]
    for result, eager in zip(program.module()(x, y), Chain()(x, y), strict=True):
        assert torch.equal(result, eager)


@pytest.mark.parametrize("written", [False, True])
def test_buffers_are_written_and_the_program_runs(written: bool) -> None:
    at, values = torch.tensor([1, 1, 3]), torch.tensor([1.0, 2.0, 3.0])
    edge = to_edge(torch.export.export(State(), (at, values)))
    chosen = None if written else ()
    program = reinplace_pass(edge.exported_program(), ops_to_inplace=chosen)
    assert ("aten.index_put_.default" in targets(program)) is written
    module, eager = rl.load(edge.to_executorch().buffer), State()
    for _ in range(2):
        assert torch.equal(module(at, values), eager(at, values))


def test_a_call_does_not_write_what_it_also_reads() -> None:
    class Reordered(torch.nn.Module):
        def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            y = x + 1
            return torch.index_put(y, (at,), y)

    inputs = (torch.randn(4), torch.tensor([1, 2, 3, 0]))
    edge = to_edge(torch.export.export(Reordered(), inputs))
    program = reinplace_pass(edge.exported_program())
    assert torch.equal(program.module()(*inputs), Reordered()(*inputs))


def test_a_wrong_writing_form_is_refused() -> None:
    edge = to_edge(torch.export.export(Chain(), (torch.randn(4), torch.randn(4))))
    for wrong in (aten.mul_.Tensor, aten.relu_.default, aten.add.Tensor):
        with pytest.raises(
            ExportValueError, match="does not write the first argument of aten::add"
        ):
            reinplace_pass(edge.exported_program(), inplace_overrides={aten.add.Tensor: wrong})
