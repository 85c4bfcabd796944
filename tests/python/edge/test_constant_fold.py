"""constant_fold: what depends on no input is computed at export, unless the file would grow."""

import torch
from graphs import core, operators, run

from rushlight.edge.constants import Constants
from rushlight.edge.passes.constant_fold import constant_fold
from rushlight.edge.passes.remove_asserts import remove_asserts


def test_a_chain_on_constants_becomes_one_constant() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(4).to(torch.float32).mul(0.5).exp()

    x = torch.randn(4)
    program = core(model, x)
    remove_asserts(program.graph)
    constant_fold(Constants(program))
    assert operators(program.graph) == ["add.Tensor"]
    assert torch.equal(run(program, x)[0], model(x))


def test_a_large_value_made_of_a_small_one_stays_an_operator() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + torch.full((64, 1024), 0.5)

    x = torch.randn(64, 1024)
    program = core(model, x)
    constant_fold(Constants(program))
    assert operators(program.graph) == ["full.default", "add.Tensor"]


def test_random_operators_and_written_buffers_are_not_folded() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.state.add_(1)
            return x + self.state * 2 + torch.rand(4)

    program = core(Model(), torch.randn(4))
    before = operators(program.graph)
    constant_fold(Constants(program))
    assert operators(program.graph) == before
