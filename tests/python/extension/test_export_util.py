"""From a module to a file in one call, against eager."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.export import Dim

import rushlight
from rushlight.extension.export_util import export_to_edge, export_to_exec_prog, save_pte_program


class Scaled(torch.nn.Module):
    """A layer with dropout, which evaluation leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.layer(x)) * scale


def test_a_module_becomes_a_file_that_runs(tmp_path: Path) -> None:
    model, x, scale = Scaled(), torch.randn(2, 4), torch.tensor(3.0)
    program = export_to_exec_prog(
        model,
        (x,),
        example_kwarg_inputs={"scale": scale},
        dynamic_shapes={"x": {0: Dim("rows", max=8)}, "scale": None},
        edge_constant_methods={"answer": 42},
    )
    path = save_pte_program(program, "scaled", str(tmp_path))
    assert path == str(tmp_path / "scaled.pte")
    module = rushlight.load(path)
    more = torch.randn(7, 4)
    torch.testing.assert_close(module(more, scale=scale), model(more, scale))
    assert module.answer() == 42
    named = str(tmp_path / "named.pte")
    assert save_pte_program(program, named) == named
    assert Path(named).read_bytes() == Path(path).read_bytes()


def test_an_edge_program_has_the_captured_calls() -> None:
    edge = export_to_edge(Scaled().eval(), (torch.randn(2, 4), torch.tensor(1.0)), verbose=False)
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert any("mul" in str(node.target) for node in calls)
