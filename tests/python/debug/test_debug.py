"""Models without faults are not accused; what is not compared is told."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.map import map
from torch._higher_order_ops.scan import scan

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


class Flow(nn.Module):
    """A branch, loops and a branch in a loop; each clamps what it computes."""

    def __init__(self, kind: str, limit: float = 100.0) -> None:
        super().__init__()
        self.kind, self.limit = kind, limit

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        limit = self.limit

        def grown(x: torch.Tensor) -> torch.Tensor:
            return torch.clamp(x * 2, max=limit) + 1

        def row(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.clamp(x + y, max=limit) * 2

        def taken(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return i + 1, torch.cond(i > 0, grown, torch.sin, (x,))

        def carried(c: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.clamp(c + x, max=limit) * 1.5, torch.sin(c)

        zero, y = torch.tensor(0), torch.sin(x) + 1
        if self.kind == "cond":
            return torch.sin(torch.cond(x.sum() > 0, grown, torch.cos, (y,)))
        if self.kind == "while_loop":
            body = lambda i, x: (i + 1, grown(x))  # noqa: E731
            return torch.while_loop(lambda i, x: i < 3, body, (zero, y))[1] * 2
        if self.kind == "nested":
            return torch.while_loop(lambda i, x: i < 3, taken, (zero, y))[1] * 2
        if self.kind == "map":
            return map(row, torch.stack([y, y * 2, y * 3]), y) + 1
        last, every = scan(carried, y, torch.stack([y, y * 2, y * 3]))
        return last + every


# Where the clamp first does something, and in which iteration.
FLOWS = {
    "cond": (1.1, "cond.", None),
    "while_loop": (6.0, "while_loop.", 1),
    "nested": (2.5, "while_loop.cond.", 1),
    "map": (4.5, "map_impl.", 1),
    "scan": (6.0, "scan.", 1),
}
SMALL = torch.tensor([0.1, 0.3, 0.7, 1.0])


QUICK = {("cond", "cpu"), ("while_loop", "portable"), ("while_loop", "cpu"), ("map", "xnnpack")}


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        pytest.param(k, b, marks=[] if (k, b) in QUICK else pytest.mark.full)
        for k in FLOWS
        for b in ("portable", "cpu", "xnnpack")
    ],
)
def test_branches_and_loops_are_followed(kind: str, backend: str) -> None:
    limit, start, iteration = FLOWS[kind]
    clean = debug(Flow(kind).eval(), (SMALL,), backend=backend)
    assert clean.verdict == "" and clean.first is None
    assert any(gap.node.startswith(start) for gap in clean.gaps)
    module = rl.load(
        rl.export(Flow(kind, limit).eval(), (SMALL,), backend=backend).buffer,
        trace=TraceOptions(values="all"),
    )
    module(SMALL.numpy())
    trace = module.trace.to_bytes()
    wrong = debug(Flow(kind).eval(), (SMALL,), backend=backend, trace=trace)
    assert wrong.first is not None and wrong.first.node.startswith(start)
    assert wrong.first.iteration == iteration
    told = "" if iteration is None else f" in iteration {iteration}"
    assert f"){told}" in wrong.verdict and "test_debug.py" in wrong.verdict
    assert [gap.node for gap in wrong.gaps if gap.reason] == [wrong.first.node]


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
