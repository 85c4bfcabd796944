"""prepare_branches: branches that torch's decomposition would refuse are rewritten."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import rushlight as rl
from rushlight.edge.prepare_branches import prepare_branches

Branch = Callable[[torch.Tensor], torch.Tensor]
# Eager refuses a branch whose result is its input, so both are called here as Python does.
BRANCHES: dict[str, tuple[Branch, Branch]] = {
    "its input": (lambda x: x, lambda x: x * 2),
    "a view of its input": (lambda x: x.t(), lambda x: x.t() + 1),
    "a tensor of numbers": (lambda x: x + torch.tensor([1.0, 2.0]), lambda x: x * 2),
    "only numbers": (lambda x: x * 0 + torch.tensor(1.0), lambda x: x - torch.tensor([[3.0]])),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_gives(name: str) -> None:
    on_true, on_false = BRANCHES[name]

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, on_true, on_false, (x,)) * 3

    program = rl.export(Model(), (torch.ones(3, 2),), verify=False)
    module = rl.load(program.buffer)
    x = torch.arange(6.0).reshape(3, 2)
    torch.testing.assert_close(module(x), on_true(x) * 3)
    torch.testing.assert_close(module(-x - 1), on_false(-x - 1) * 3)


class Numbers(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, BRANCHES["a tensor of numbers"][0], torch.sin, (x,))


def test_the_callers_program_is_not_changed() -> None:
    program = torch.export.export(Numbers(), (torch.ones(3, 2),))
    before = program.graph_module.print_readable(print_output=False)
    prepared = prepare_branches(program)
    assert prepared.graph_module.print_readable(print_output=False) != before
    assert program.graph_module.print_readable(print_output=False) == before
    assert not program.constants and len(prepared.constants) == 1
    held = [name for name, _ in program.graph_module.named_buffers()]
    assert held == ["true_graph_0._tensor_constant0"]


def test_a_program_without_branches_is_left_alone() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(3),))
    assert prepare_branches(program) is program
