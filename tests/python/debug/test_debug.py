"""Models without faults are not accused; what is not compared is told."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.backends.demo import DemoPartitioner
from rushlight.debug import debug
from rushlight.errors import ExportError
from rushlight.runtime import TraceOptions


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2


class Parts(nn.Module):
    """Operators with several results, of which a place writes some."""

    def forward(self, x: torch.Tensor, y: float = 2.0) -> dict[str, Any]:
        a, b = torch.split(x, 4, -1)
        return {"a": a * y, "b": [b, torch.topk(x, 2)[1]]}


class Loop(nn.Module):
    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def more(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, x * self.factor

        return torch.while_loop(lambda i, x: i < 3, more, (torch.tensor(0), x))[1]


def halved() -> nn.Module:
    """Layers of a dtype that engines convert from and to."""
    return nn.Sequential(nn.Linear(8, 8), nn.GELU())


ROWS = torch.linspace(-1, 1, 16).reshape(2, 8)
LINES = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(100)]
CASES: dict[str, tuple[nn.Module, tuple[Any, ...], dict[str, Any], int]] = {
    "branch": (Branch(), (ROWS,), {}, 2),
    "state": (State(), (ROWS[0],), {}, 2),
    "parts": (Parts(), (ROWS,), {}, 4),
    "bfloat16": (halved().bfloat16(), (ROWS.bfloat16(),), {}, 1),
    "float16": (halved().half(), (ROWS.half(),), {}, 1),
    "recurrent": (nn.LSTM(8, 4, batch_first=True), (ROWS[None],), {}, 3),
    "images": (
        nn.Sequential(
            nn.ConvTranspose2d(3, 4, 3, stride=2), nn.Upsample(scale_factor=2), nn.SiLU()
        ),
        (torch.randn(2, 3, 5, 7, generator=torch.Generator().manual_seed(0)),),
        {},
        2,
    ),
    "4 bits": (
        nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32)),
        (torch.linspace(-1, 1, 512).reshape(4, 128),),
        {"quantize": "int4-weights"},
        2,
    ),
    "dynamic": (
        nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)),
        (ROWS,),
        {"dynamic_shapes": ({0: torch.export.Dim("rows", min=1, max=8)},)},
        2,
    ),
    "long": (nn.Sequential(*LINES), (ROWS,), {}, 100),
}


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_accused_where_nothing_is_wrong(name: str, backend: str) -> None:
    torch.manual_seed(0)
    model, args, options, least = CASES[name]
    departures = debug(model.eval(), args, backend=backend, **options)
    assert departures.verdict == "" and departures.first is None and not departures.departing
    assert len(departures.gaps) >= least
    assert "Every operator that was compared" in str(departures)


@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_loops_are_told_as_not_compared(backend: str) -> None:
    clean = debug(Loop().eval(), (ROWS,), backend=backend)
    assert clean.verdict == "" and clean.not_compared and not clean.gaps
    assert "No value between operators could be compared" in str(clean)
    module = rl.load(
        rl.export(Loop(2.5).eval(), (ROWS,), backend=backend).buffer,
        trace=TraceOptions(values="all"),
    )
    module(ROWS.numpy())
    wrong = debug(Loop().eval(), (ROWS,), backend=backend, trace=module.trace.to_bytes())
    assert wrong.first is None and "output 0: it differs by up to" in wrong.verdict
    assert "That arises in what was not compared: while_loop" in wrong.verdict


def test_a_delegate_that_tells_no_values_is_one_place() -> None:
    class Sum(nn.Module):
        def __init__(self, factor: float = 1.0) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.sin((x + y) * y * self.factor)

    square = (ROWS[:, :2], ROWS[:, :2] + 1)
    clean = debug(Sum().eval(), square, backend=DemoPartitioner())
    assert clean.verdict == ""
    [place] = [gap.place for gap in clean.gaps if gap.place.backend]
    assert len(place.nodes) > 1 and place.inside == ""
    pte = rl.export(Sum(1.5).eval(), square, backend=DemoPartitioner()).buffer
    module = rl.load(pte, trace=TraceOptions(values="all"))
    module(*(x.numpy() for x in square))
    trace = module.trace.to_bytes()
    first = debug(Sum().eval(), square, backend=DemoPartitioner(), trace=trace).first
    assert first is not None and first.place.nodes == place.nodes


def test_several_forms_are_refused() -> None:
    with pytest.raises(ExportError, match="several forms: debug each by itself"):
        debug(nn.Linear(8, 2).eval(), (ROWS,), backend=["cpu", "portable"])
