"""common_subexpression: equal operators on equal arguments are computed once."""

import torch
from graphs import core, operators, run

from rushlight.edge.passes.common_subexpression import common_subexpression


def test_equal_calls_merge_transitively() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x.sin()) * torch.exp(x.sin())

    x = torch.randn(5)
    program = core(model, x)
    assert common_subexpression(program.graph) == 2
    assert operators(program.graph) == ["sin.default", "exp.default", "mul.Tensor"]
    assert torch.equal(run(program, x)[0], model(x))


def test_arguments_that_only_look_equal_keep_calls_apart() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return torch.mul(x, 1), torch.mul(x, 1.0), torch.mul(x, True)

    program = core(model, torch.ones(3, dtype=torch.int64))
    assert common_subexpression(program.graph) == 0


def test_random_calls_stay_apart() -> None:
    program = core(lambda x: x + torch.rand(3) + torch.rand(3), torch.ones(3))
    assert common_subexpression(program.graph) == 0
