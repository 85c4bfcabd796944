"""Products of eager with large weights, which are made some rows at a time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Interpreter

from rushlight.capture import capture
from rushlight.check import large_weights
from rushlight.check.eager import eager_results
from rushlight.llm.weights.layers import QuantizedLinear, StoredEmbedding, StoredLinear
from rushlight.llm.weights.rounding import quantised

DEPTH, ROWS, MANY = 64, 100, 64 * 7


class Layers(torch.nn.Module):
    """Products with weights of every kind; the last one shares a table's."""

    def __init__(self) -> None:
        super().__init__()
        weight, bias = torch.randn(DEPTH, DEPTH), torch.randn(DEPTH)
        self.table = StoredEmbedding(torch.randn(ROWS, DEPTH).bfloat16())
        self.layers = torch.nn.Sequential(
            StoredLinear(weight.half(), bias),
            QuantizedLinear(quantised(weight, 8, 0, ""), bias, in_groups=True),
            QuantizedLinear(quantised(weight, 4, 32, ""), None, in_groups=True),
            StoredLinear(self.table.weight, None),
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.layers(self.table(tokens))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(large_weights, "MANY", MANY)
    return capture(Layers().eval(), (torch.arange(5),))


def test_results_are_those_of_whole_weights(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    [got] = eager_results(program, (torch.arange(5),), {})
    monkeypatch.setattr(large_weights, "MANY", 1 << 30)
    [wanted] = eager_results(program, (torch.arange(5),), {})
    # A number that is rounded to another integer of 8 bits changes all that follows it.
    assert (got - wanted).norm() < 1e-2 * wanted.norm()


def test_no_large_weight_is_made_whole(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    run = Interpreter.run_node
    rows_of = large_weights._Rows.__getitem__

    def noted(self: Any, rows: slice) -> torch.Tensor:
        made.append(rows_of(self, rows))
        return made[-1]

    def node(self: Any, n: Any) -> Any:
        value = run(self, n)
        if n.op == "call_function" and isinstance(value, torch.Tensor):
            made.append(value)
        return value

    monkeypatch.setattr(large_weights._Rows, "__getitem__", noted)
    monkeypatch.setattr(Interpreter, "run_node", node)
    eager_results(program, (torch.arange(5),), {})
    assert len(made) > 4 * (DEPTH // 7)
    assert max(one.numel() for one in made) <= max(MANY, 5 * ROWS)


def test_sizes_that_are_not_known_are_not_asked_for() -> None:
    class Chosen(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[x[:, 0] > 0].double()

    x = torch.randn(2600, 4).repeat(1, 101)  # up to 2600 x 404 elements, more than MANY
    [rows] = eager_results(capture(Chosen(), (x,)), (x,), {})
    assert rows.shape == (int((x[:, 0] > 0).sum()), 404)


def test_a_weight_that_is_written_later_is_read_before(monkeypatch: pytest.MonkeyPatch) -> None:
    class Halved(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randn(ROWS, DEPTH).half())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = self.weight.float()
            self.weight.mul_(0.5)
            return torch.nn.functional.linear(x, weight)

    monkeypatch.setattr(large_weights, "MANY", MANY)
    model, x = Halved(), torch.randn(3, DEPTH)
    wanted = x @ model.weight.float().t()
    [got] = eager_results(capture(model, (x,)), (x,), {})
    torch.testing.assert_close(got, wanted)
