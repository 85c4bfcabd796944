"""Lines of Python for what happens in delegates, wherever they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.export import export

import delegates
import rushlight as rl
from delegated_models import Sine, edge_of
from delegates import taking
from rushlight.edge import ExecutorchBackendConfig
from rushlight.partition import to_backend
from rushlight.serialize.debug import KEY, read_debug
from rushlight.serialize.pte import read_pte
from rushlight.serialize.segments import as_bytes


class Loop(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def body(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = x.sin()
            return i + 1, y.cos()

        i = torch.zeros((), dtype=torch.int64)
        return torch.ops.higher_order.while_loop(lambda i, x: i < 2, body, (i, x), ())[1]


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def one(x: torch.Tensor) -> torch.Tensor:
            y = x.sin()
            return y.cos()

        return torch.cond(x.sum() > 0, one, lambda x: x.tan(), (x,))


def _fail(monkeypatch: pytest.MonkeyPatch, operator: str) -> None:
    run = delegates._call

    def failing(target: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if target == operator:
            raise RuntimeError("no more numbers")
        return run(target, args, kwargs)

    monkeypatch.setattr(delegates, "_call", failing)


@pytest.mark.parametrize("model", [Loop(), Branches()], ids=["while_loop", "cond"])
@pytest.mark.parametrize("level", ["lines", "none"])
def test_failures_in_branches_lead_to_their_lines(
    model: torch.nn.Module, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = rl.to_edge(export(model, (torch.ones(3),))).to_backend(taking("aten.sin", "aten.cos"))
    file = edge.to_executorch(ExecutorchBackendConfig(debug=level)).buffer
    _fail(monkeypatch, "aten::cos|default")
    with pytest.raises(rl.RunError, match="no more numbers") as caught:
        rl.load(file)(np.ones(3, np.float32))
    called = "while_loop(" if isinstance(model, Loop) else "torch.cond("  # torch tells no more
    assert "at cos inside" in str(caught.value)
    assert (called in str(caught.value)) == (level == "lines")


def test_a_lowered_module_inside_another_has_its_line() -> None:
    inner = to_backend("Interpreted", edge_of(Sine(), torch.ones(3)), [])

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.inner(x)
            return y + 1

    manager = rl.to_edge(export(Outer(), (torch.ones(3),)))
    program = to_backend("Interpreted", manager.exported_program(), [])
    operators = {row[1]: row[2].text for rows in program.sources().values() for row in rows}
    assert operators.pop("aten.add.Tensor") == "return y + 1"
    assert set(operators) == {"executorch_call_delegate"}
    named = read_pte(program.buffer()).named_data
    assert read_debug(bytes(as_bytes(named[KEY]))).methods["forward"].delegates != []
