"""Passes that users write: `ExportPass` on graphs with branches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as torch_map
from torch.fx.passes.infra.pass_base import PassBase, PassResult

import rushlight as rl
from rushlight.edge import ExportPass
from rushlight.edge.export_pass import Argument, NodeMetadata, ProxyValue


class TanhForSigmoid(ExportPass):
    """The pass of docs/edge.md."""

    def call_operator(
        self, op: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument], meta: NodeMetadata
    ) -> ProxyValue:
        if op is torch.ops.aten.sigmoid.default:
            op = torch.ops.aten.tanh.default
        return super().call_operator(op, args, kwargs, meta)


class Branch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def negative(a: torch.Tensor) -> torch.Tensor:
            return torch.cond(a.sum() < -2, self.layer, lambda b: b.sigmoid(), (a,))

        y = x.sigmoid() - 1
        return torch.cond(y.sum() > 0, lambda a: a.sigmoid() + 1, negative, (y,)) * y


class Loop(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def more(a: torch.Tensor) -> torch.Tensor:
            return a.sigmoid().sum() < 4.5

        return while_loop(more, lambda a: (a + a.sigmoid() + 1,), (x.sigmoid(),))[0]


class Scan(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def body(carry: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            new = (carry + row).sigmoid()
            return new, new * 2

        start = x.sigmoid()
        return scan(body, start[0], start)[1] + torch_map(lambda row: row.sigmoid(), start)


@pytest.mark.parametrize("model", [Branch(), Loop(), Scan()], ids=lambda m: type(m).__name__)
def test_branches_are_rebuilt_too(model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = (torch.randn(2, 3), torch.ones(2, 3) * 9, -torch.ones(2, 3) * 9)
    before = rl.to_edge(torch.export.export(model, examples[:1]))
    text = before.exported_program().graph_module.print_readable(print_output=False)
    same = before.transform([ExportPass()])
    after = before.transform([TanhForSigmoid()])
    code = after.exported_program().graph_module.print_readable(print_output=False)
    assert "aten.tanh" not in text and "aten.tanh" in code and "aten.sigmoid" not in code
    # The given module is unchanged.
    assert before.exported_program().graph_module.print_readable(print_output=False) == text
    kept = rl.load(same.to_executorch().buffer)
    for x in examples:
        torch.testing.assert_close(torch.from_numpy(kept(x).numpy()), model(x).detach())
    changed = rl.load(after.to_executorch().buffer)
    monkeypatch.setattr(torch.Tensor, "sigmoid", torch.Tensor.tanh)
    for x in examples:
        torch.testing.assert_close(torch.from_numpy(changed(x).numpy()), model(x).detach())


def test_passes_of_torch_are_passes() -> None:
    class Doubles(PassBase):
        def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
            for node in graph_module.graph.nodes:
                if node.op == "call_function" and "add.Tensor" in str(node.target):
                    node.args = (node.args[0], node.args[0])
            return PassResult(graph_module, True)

    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    x, y = torch.randn(3), torch.randn(3)
    edge = rl.to_edge(torch.export.export(Sum(), (x, y))).transform([Doubles()])
    torch.testing.assert_close(rl.load(edge.to_executorch().buffer)(x, y), x * 2)
    with pytest.raises(rl.ExportError, match="returned int: a pass must return a PassResult"):
        edge.transform([lambda graph_module: 3])
