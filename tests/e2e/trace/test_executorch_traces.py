"""Traces that ExecuTorch's own runtime recorded: our Inspector shows what ExecuTorch's shows.

They come from a later release than that of the other tests, whose runtime records none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import rushlight as rl
from e2e.trace.test_trace import Network, by_order, rows
from rushlight.inspect import Inspector, parse_etrecord

pytestmark = pytest.mark.full


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


class Loop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        zero = torch.tensor(0)
        return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (zero, x))[1]


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.total.add_(x)
        largest, indices = torch.topk(self.total * 2, 2)
        return largest, indices, torch.cat([x, self.total]), x > 0


Case = tuple[Callable[[], nn.Module], tuple[int, ...]]
MODELS: dict[str, Case] = {
    "network": (Network, (1, 3, 16, 16)),
    "branches": (Branches, (4,)),
    "state": (State, (4,)),
    "recurrent": (lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), (3, 4)),
}
OURS: dict[str, Case] = {**MODELS, "loop": (Loop, (4,))}  # ExecuTorch does not lower while_loop

CALLS = {"state": 1}  # ExecuTorch's Inspector refuses runs whose outputs differ


def events_of(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for block in blocks for event in block["events"]]


def compared(
    executorch: Any, folder: Path, data: np.ndarray, calls: int = 2, record: bool = True
) -> Inspector:
    """Run m.pte in ExecuTorch, and compare both Inspectors; gives ours."""
    np.savez(folder / "in.npz", in0=data)
    dump, values = folder / "m.etdp", folder / "m.values"
    outputs = executorch.call(
        "run_traced",
        pte=folder / "m.pte",
        data=folder / "in.npz",
        dump=dump,
        values=values,
        calls=calls,
    )
    etrecord = folder / "m.etrecord" if record else None
    shown = executorch.call("trace", dump=dump, values=values, etrecord=etrecord)
    for event in events_of(shown):
        if event["name"].startswith(("Method::", "Program::")):
            event["handles"] = None  # ExecuTorch gives whole runs those of instruction 0
        elif event["backend"] is not None and "#" in event["name"]:
            # And to "Convolution #1" inside XNNPACK the place 1, whatever it computes.
            event |= {"op_types": [], "stack_traces": {}, "modules": {}, "handles": None}
    ours = Inspector(dump, etrecord=etrecord, debug_buffer_path=values)
    mine = rows(ours)
    for one, other in zip(events_of(shown), events_of(mine), strict=True):
        if not one["op_types"]:  # ExecuTorch tells nothing of operators in branches and loops
            other |= {key: one[key] for key in ("op_types", "stack_traces", "modules")}
        if len(one["ns"]) < len(other["ns"]):  # and keeps the last iteration alone
            assert set(one["ns"]) <= set(other["ns"])
            other["ns"] = one["ns"]
    assert by_order(shown) == by_order(mine)
    runs = [block for block in ours.event_blocks if block.name == "Execute"]
    assert [array.tolist() for array in runs[-1].run_output] == outputs
    assert sum(len(block.events[-1].perf_data.raw) for block in runs if block.events) == calls
    return ours


def inputs(model: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(1)
    make, sizes = OURS[model]
    return make().eval(), torch.randn(sizes)


@pytest.mark.parametrize("xnnpack", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_programs_of_executorch(
    model: str, xnnpack: bool, tracing_executorch: Any, tmp_path: Path
) -> None:
    network, x = inputs(model)
    program = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(network, (x,)), program)
    etrecord, pte = tmp_path / "m.etrecord", tmp_path / "m.pte"
    tracing_executorch.call("record", program=program, pte=pte, etrecord=etrecord, xnnpack=xnnpack)
    ours = compared(tracing_executorch, tmp_path, x.numpy(), CALLS.get(model, 2))
    assert ours.group_by("operator")
    parse_etrecord(etrecord)


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
@pytest.mark.parametrize("model", OURS)
def test_our_programs_and_records(
    model: str, backend: str, tracing_executorch: Any, tmp_path: Path
) -> None:
    network, x = inputs(model)
    record = tmp_path / "m.etrecord"
    rl.export(network, (x,), backend=backend, etrecord=record).save(tmp_path / "m.pte", quiet=True)
    ours = compared(tracing_executorch, tmp_path, x.numpy(), CALLS.get(model, 2))
    operators = {op for block in ours.event_blocks for e in block.events for op in e.op_types}
    assert operators >= {"branches": {"aten.sin.default"}, "loop": {"aten.mul.Tensor"}}.get(
        model, set()
    )
    compared(tracing_executorch, tmp_path, x.numpy(), 1, record=False)
