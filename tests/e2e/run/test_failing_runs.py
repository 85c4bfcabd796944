"""A run that fails says which operator, argument and value, and leaves the module's state alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim

import rushlight as rl
from rushlight.edge import EdgeCompileConfig
from rushlight.pipeline import to_edge


class Counting(torch.nn.Module):
    """Two buffers written in place, before and after what may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first", torch.zeros(3))
        self.register_buffer("second", torch.zeros(4, 2))

    def fails(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x[i]

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.first.add_(1)
        picked = self.fails(x, i)
        self.second[1:3] += picked.sum()
        self.first.mul_(2)
        return picked, self.first.clone(), self.second.clone()


class Asserted(Counting):
    def fails(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        n = i.max().item()
        torch._check(n <= 3)
        torch._check(n >= -4)
        return x * n


class AssertedTensor(Counting):
    def fails(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        torch._assert_async((i < 4).all(), "i must be less than 4")
        return x * i.sum()


class Sized(Counting):
    def fails(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        n = i.max().item()
        torch._check(n <= 3)
        return torch.ones(n, 2) * x.sum()


class Embedded(Counting):
    def fails(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(i, x)


class Gathered(Counting):
    def fails(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.gather(x, 0, i[:, None])


class Scattered(Counting):
    def fails(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.zeros(4, 2).index_put((i,), x[:2])


class OneHot(Counting):
    def fails(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.index_select(0, i)


GOOD = torch.tensor([1, 3])
FAILING: dict[type[Counting], tuple[torch.Tensor, tuple[str, ...]]] = {
    Counting: (torch.tensor([1, 7]), ("aten::index.Tensor_out", "index 7", "dimension 0")),
    Asserted: (torch.tensor([1, 7]), ("aten::_assert_scalar", "<= 3")),
    AssertedTensor: (torch.tensor([1, 7]), ("aten::_assert_async", "i must be less than 4")),
    Sized: (torch.tensor([1, 7]), ("aten::_assert_scalar", "<= 3")),
    Embedded: (torch.tensor([1, -7]), ("aten::embedding.out", "-7")),
    Gathered: (torch.tensor([1, 7]), ("aten::gather.out", "7")),
    Scattered: (torch.tensor([1, 7]), ("aten::index_put.out", "7")),
    OneHot: (torch.tensor([1, 7]), ("aten::index_select.out", "7")),
}
X = torch.arange(8.0).reshape(4, 2)


def good_calls(module: Any, eager: Counting, times: int) -> None:
    for _ in range(times):
        for got, wanted in zip(module(X, GOOD), eager(X, GOOD), strict=True):
            torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("model", FAILING, ids=lambda m: m.__name__)
def test_a_failing_run_leaves_the_state(model: type[Counting]) -> None:
    module = rl.load(rl.export(model().eval(), (X, GOOD)).buffer)
    eager = model().eval()
    good_calls(module, eager, 2)
    bad, words = FAILING[model]
    for _ in range(2):
        with pytest.raises(rl.RunError) as caught:
            module(X, bad)
        for word in words:
            assert word in str(caught.value)
        assert "test_failing_runs.py" in str(caught.value), "the line of Python"
    good_calls(module, eager, 2)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "shape": lambda module: module(X[:2], GOOD),
    "dtype": lambda module: module(X, GOOD.float()),
    "missing": lambda module: module(X),
    "output that does not fit": lambda module: module.execute_into(
        [np.zeros((2, 2), np.float32), np.zeros(9, np.float32), None], X, GOOD
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_call_leaves_the_state(what: str) -> None:
    module = rl.load(rl.export(Counting().eval(), (X, GOOD)).buffer)
    eager = Counting().eval()
    good_calls(module, eager, 1)
    with pytest.raises(rl.RunError):
        REFUSED[what](module)
    good_calls(module, eager, 1)


class Sizes(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        return x.new_ones((n, x.shape[0] * 1000)).sum()


def test_sizes_that_are_too_large_are_refused() -> None:
    args = (torch.ones(3), 5)
    shapes = ({0: Dim("m", max=8)}, Dim.AUTO(max=64))
    module = rl.load(rl.export(Sizes(), args, dynamic_shapes=shapes).buffer)
    assert module(torch.ones(8), 64) == 64 * 8000
    for n in (65, -1, 2**40, 2**62):
        with pytest.raises(rl.RunError, match=f"input 'n': is {n}, allowed"):
            module(torch.ones(8), n)


def test_asserts_can_be_left_out_for_executorch() -> None:
    captured = torch.export.export(Asserted().eval(), (X, GOOD))
    config = EdgeCompileConfig(keep_asserts=False)
    manager = to_edge(captured, compile_config=config).to_executorch()
    names = {op.name for op in manager.executorch_program.execution_plan[0].operators}
    assert not any("assert" in name for name in names)
    kept = to_edge(captured).to_executorch().executorch_program.execution_plan[0].operators
    assert "aten::_assert_scalar" in {op.name for op in kept}


class Chosen(torch.nn.Module):
    def __init__(self, most: int | None) -> None:
        super().__init__()
        self.most = most

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positive = x[x > 0]
        if self.most is not None:
            torch._check(positive.shape[0] <= self.most)
        return positive * 2


def test_what_cannot_fail_is_not_asserted() -> None:
    """Torch asserts of every count that it is no more than there is, which needs no instruction."""
    x = torch.tensor([1.0, -1, 2, 3])
    names = []
    for most in (None, 3):
        program = rl.export(Chosen(most), (x,))
        operators = program.manager.executorch_program.execution_plan[0].operators
        names.append("aten::_assert_scalar" in {op.name for op in operators})
        torch.testing.assert_close(rl.load(program.buffer)(x), x[x > 0] * 2)
    assert names == [False, True]
    with pytest.raises(rl.RunError, match=r"index.Tensor_out.*room for 3 elements"):
        rl.load(program.buffer)(torch.ones(4))
