"""The compiler stage by stage, under the names that ExecuTorch gives the stages.

python examples/staged_api.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import rushlight as rl
from rushlight.edge import ExecutorchBackendConfig, ExportPass, MemoryPlanningPass


class Counter(nn.Module):
    """Adds up what it is given: its state lives in the program."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.total.add_(x.relu())
        return self.total.clone()


class NoRelu(ExportPass):
    """A pass of our own: lets negative numbers through."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if op is torch.ops.aten.relu.default:
            return args[0]
        return super().call_operator(op, args, kwargs, meta)


def main() -> None:
    captured = torch.export.export(Counter(), (torch.ones(3),))

    edge = rl.to_edge(captured, constant_methods={"version": 7}).transform([NoRelu()])
    print("edge operators:", *operators(edge.exported_program()))

    config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(alignment=64))
    finished = edge.to_executorch(config)
    print("methods:", *sorted(finished.methods | finished.config_methods))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counter.pte"
        finished.save(path)
        module = rl.load(path)
    print("version:", module.version())
    print("first call:", module(torch.tensor([1.0, -2.0, 3.0])))
    print("second call:", module(torch.tensor([1.0, -2.0, 3.0])))


def operators(program: torch.export.ExportedProgram) -> list[str]:
    """Names of the operators in a graph."""
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function"]


if __name__ == "__main__":
    main()
