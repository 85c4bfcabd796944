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
            QuantizedLinear(quantised(weight, 8, 0, ""), bias, quantizes_rows=False),
            QuantizedLinear(quantised(weight, 4, 32, ""), None, quantizes_rows=False),
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
    assert (got - wanted).abs().max() < 1e-5 * wanted.abs().max()


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
