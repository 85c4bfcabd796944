"""Times by module, line and kind; outliers; and a slow operator that is planted."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.errors import RunError
from rushlight.inspect import Inspector
from rushlight.inspect.trace.events import Event, EventBlock, PerfData
from rushlight.inspect.trace.statistics import changes_between, outliers_of

RUNS = 20


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.second = nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x))).softmax(-1)


@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_groups(backend: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 32)
    path = tmp_path / "m.etrecord"
    program = rl.export(Network().eval(), (x,), backend=backend, etrecord=path)
    module = rl.load(program.buffer, trace=True)
    for _ in range(RUNS):
        module(x.numpy())
    inspector = Inspector(etdump_data=module.trace.to_bytes()[0], etrecord=path)
    modules = {group.key: group for group in inspector.group_by("module")}
    assert {"first", "second"} <= set(modules)
    for by in ("module", "line", "kind", "operator"):
        groups = inspector.group_by(by)
        assert sum(group.share for group in groups) == pytest.approx(1)
        assert [group.time for group in groups] == sorted((g.time for g in groups), reverse=True)
    assert {g.key for g in inspector.group_by("kind")} == (
        {"kernel"} if backend == "portable" else {"CpuBackend"}
    )
    lines = inspector.group_by("line")
    assert all("test_statistics.py:" in group.key for group in lines)
    with pytest.raises(RunError, match="by='colour': choose one of 'module', 'line'"):
        inspector.group_by("colour")  # type: ignore[arg-type]


def blocks(times: dict[str, list[float]]) -> list[EventBlock]:
    events = [
        Event(name, PerfData(raw), op_types=[name], _instruction_id=i)
        for i, (name, raw) in enumerate(times.items())
    ]
    return [EventBlock("Execute", events)]


def test_outliers() -> None:
    chance = np.random.default_rng(0)
    times = {"a": list(1 + 0.05 * chance.random(50)), "b": list(2 + 0.05 * chance.random(50))}
    times["b"][7] = 9.0
    times["a"][3] = 3.0
    far = outliers_of(blocks(times))
    assert [(one.event.name, one.run) for one in far] == [("b", 7), ("a", 3)]
    assert outliers_of(blocks({"a": [1.0] * 40, "b": [1, 2, 3]})) == []


def test_a_slow_operator_is_named() -> None:
    chance = np.random.default_rng(1)
    names = [f"operator {i}" for i in range(40)]
    before = {name: list(1 + 0.2 * chance.random(30)) for name in names}
    after = {name: list(1 + 0.2 * chance.random(30)) for name in names}
    after["operator 17"] = [time * 1.2 for time in after["operator 17"]]
    changes = changes_between(blocks(before), blocks(after))
    first = changes[0]
    assert first.name == "17 operator 17" and first.is_certain
    assert first.low < 1.2 < first.high and first.ratio == pytest.approx(1.2, rel=0.1)
    assert sum(change.is_certain for change in changes) <= 5  # one, and 5 % of the others
    del after["operator 3"]
    gone = {c.name: c for c in changes_between(blocks(before), blocks(after))}["3 operator 3"]
    assert gone.is_certain and np.isnan(gone.after)


def test_a_slow_run_of_a_real_trace() -> None:
    x = torch.randn(4, 32)
    module = rl.load(rl.export(Network().eval(), (x,)).buffer, trace=True)
    start = time.perf_counter()
    for _ in range(RUNS):
        module(x.numpy())
    total = (time.perf_counter() - start) * 1e3
    inspector = Inspector(etdump_data=module.trace.to_bytes()[0])
    changes = inspector.compare(inspector)
    assert all(change.ratio == 1 and not change.is_certain for change in changes)
    assert sum(change.before for change in changes) * RUNS < total
