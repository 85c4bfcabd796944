"""Eager's results for inputs in any order that the model accepts."""

from __future__ import annotations

import pytest
import torch

from rushlight.check import first_departure, tolerance_of
from rushlight.check.eager import eager_results
from rushlight.pipeline import to_edge


class Keywords(torch.nn.Module):
    """Takes two keywords whose shapes differ."""

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, scale) - bias


X, SCALE, BIAS = torch.randn(4, 8), torch.randn(8, 3), torch.randn(3)


@pytest.mark.parametrize("names", [["scale", "bias"], ["bias", "scale"]])
def test_keywords_may_come_in_any_order(names: list[str]) -> None:
    program = torch.export.export(Keywords(), (X,), {"scale": SCALE, "bias": BIAS})
    inputs = {"scale": SCALE, "bias": BIAS}
    kwargs = {name: inputs[name] for name in names}
    [result] = eager_results(program, (X,), kwargs)
    assert torch.equal(result, Keywords()(X, **kwargs))
    manager = to_edge(program).to_executorch()
    fault = first_departure(manager, "forward", (X,), kwargs, tolerance_of(program))
    assert "No single node departs" in fault.text
