"""constant_fold: values that depend on no input are computed at export, unless the file grows."""

import pytest
import torch
import torch.nn.functional as F
from graphs import captured, core, operators, run

import rushlight as rl
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


class Weights(torch.nn.Module):
    """Computes with parts of a weight, and with the weight itself too if `whole`."""

    def __init__(self, rows: int, *, whole: bool) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(rows, 64))
        self.whole = whole

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = self.weight.chunk(2)
        results = [x @ first.t(), F.linear(x, second), *([x @ self.weight.t()] * self.whole)]
        return torch.cat(results, -1)


SMALL, LARGE = 64, 1024  # rows of weights whose parts take less and more than 64 KiB


@pytest.mark.parametrize(("rows", "whole"), [(SMALL, False), (SMALL, True), (LARGE, False)])
def test_parts_of_a_weight_are_constants(rows: int, whole: bool) -> None:
    model, x = Weights(rows, whole=whole), torch.randn(3, 64)
    program = core(model, x)
    constant_fold(Constants(program))
    assert not {"split.Tensor", "split_with_sizes.default"}.intersection(operators(program.graph))
    assert operators(program.graph).count("permute.default") == 0
    torch.testing.assert_close(run(program, x)[0], model(x))


def test_a_large_weight_that_is_used_whole_and_in_parts_is_stored_once() -> None:
    model, x = Weights(LARGE, whole=True), torch.randn(3, 64)
    program = core(model, x)
    constant_fold(Constants(program))
    assert set(Constants(program).nodes()) == {program.graph.find_nodes(op="placeholder")[0]}
    size = LARGE * 64 * 4
    assert size < len(rl.to_edge(captured(model, x)).to_executorch().buffer) < 1.1 * size


def test_large_parts_that_overlap_stay_operators() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(LARGE, 64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, self.weight[:768]) + F.linear(x, self.weight[256:])

    program = core(Model(), torch.randn(3, 64))
    before = operators(program.graph)
    constant_fold(Constants(program))
    assert operators(program.graph) == before


def test_each_iteration_uses_the_same_part() -> None:
    class Loop(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(16, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(5):
                x = x @ self.weight[:8] + x @ self.weight[8:]
            return x

    program = core(Loop(), torch.randn(3, 8))
    constants = Constants(program)
    constant_fold(constants)
    constants.drop_unused()
    assert len(constants.nodes()) == 2


def test_results_of_one_call_on_constants_are_constants() -> None:
    table = torch.tensor([3.0, 1.0, 2.0])

    def model(x: torch.Tensor) -> torch.Tensor:
        values, indices = table.topk(2)
        return x + values + indices

    x = torch.randn(2)
    program = core(model, x)
    constant_fold(Constants(program))
    assert set(operators(program.graph)) == {"add.Tensor"}
    torch.testing.assert_close(run(program, x)[0], model(x))
