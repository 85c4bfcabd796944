"""Programs whose results have sizes that values tell, or none for some values, as in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import rushlight


class Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def run(function: Callable[..., Any], *inputs: torch.Tensor) -> Any:
    program = rushlight.export(Module(function), inputs, verify=False)
    return rushlight.load(program.buffer)


SINGULAR = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
REGULAR = torch.tensor([[3.0, 1.0], [1.0, 2.0]])
CHECKED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "inv": torch.linalg.inv,
    "cholesky": lambda x: torch.linalg.cholesky(x - 0.5 * torch.eye(2)),
    "solve": lambda x: torch.linalg.solve(x, torch.ones(2)),
}


@pytest.mark.parametrize("name", CHECKED)
def test_a_singular_matrix_fails_as_in_eager_mode(name: str) -> None:
    function = CHECKED[name]
    program = run(function, REGULAR)
    torch.testing.assert_close(torch.as_tensor(program(REGULAR)), function(REGULAR))
    with pytest.raises(RuntimeError):
        function(SINGULAR)
    with pytest.raises(rushlight.RunError, match=rf"linalg.{name}: a matrix is singular"):
        program(SINGULAR)


def bounded_counts(x: torch.Tensor) -> torch.Tensor:
    counts = torch.bincount(x)
    torch._check(counts.shape[0] <= 8)
    return counts


def test_counts_have_the_bound_that_the_model_gives() -> None:
    program = run(bounded_counts, torch.tensor([1, 1, 3]))
    for values in ([1, 1, 3], [7], [0, 0]):
        x = torch.tensor([*values, *values[:1] * (3 - len(values))])
        np.testing.assert_array_equal(program(x), torch.bincount(x))
    with pytest.raises(rushlight.RunError):
        program(torch.tensor([9, 0, 0]))


def test_different_elements_have_as_many_as_there_are() -> None:
    def function(x: torch.Tensor) -> Any:
        return torch.unique(x, return_inverse=True, return_counts=True)

    program = run(function, torch.tensor([3, 1, 3, 2]))
    for values in ([3, 1, 3, 2], [5, 5, 5, 5], [4, 3, 2, 1]):
        x = torch.tensor(values)
        for got, wanted in zip(program(x), function(x), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("at", [(1, 5), (5, 1), (-2, 9), (0, 0)])
def test_a_tensor_is_split_where_another_says(at: tuple[int, int]) -> None:
    """Torch asserts of each part where it begins in the memory of the whole."""
    x = torch.arange(28.0).reshape(7, 4)
    program = run(torch.tensor_split, x, torch.tensor([1, 5]))
    parts = program(x, torch.tensor(at))
    for got, wanted in zip(parts, torch.tensor_split(x, torch.tensor(at)), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_leaky_slopes_are_those_that_eager_draws() -> None:
    x = torch.randn(50)
    program = run(lambda x: torch.rrelu(x, 0.1, 0.3, True), x)
    torch.manual_seed(7)
    wanted = torch.rrelu(x, 0.1, 0.3, True)
    program.manual_seed(7)
    torch.testing.assert_close(torch.as_tensor(program(x)), wanted)
