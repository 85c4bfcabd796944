"""Passes of torch.fx's own manager, compared with eager PyTorch."""

from __future__ import annotations

import torch
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult
from torch.fx.passes.infra.pass_manager import PassManager

import rushlight as rl


class Sum(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def multiplied(module: GraphModule) -> PassResult:
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor):
        node.target = torch.ops.aten.mul.Tensor
    return PassResult(module, True)


def test_its_passes_are_run() -> None:
    x, y = torch.tensor([2.0]), torch.tensor([5.0])
    edge = rl.to_edge(torch.export.export(Sum(), (x, y)))
    manager = PassManager()
    manager.add_pass(multiplied)
    changed = edge.transform(manager)  # type: ignore[arg-type]
    torch.testing.assert_close(changed.exported_program().module()(x, y), x * y)


def test_no_excepted_operators() -> None:
    x = torch.ones(2)
    config = rl.edge.EdgeCompileConfig(_core_aten_ops_exception_list=None)
    edge = rl.to_edge(torch.export.export(Sum(), (x, x)), compile_config=config)
    torch.testing.assert_close(edge.exported_program().module()(x, x), x + x)
