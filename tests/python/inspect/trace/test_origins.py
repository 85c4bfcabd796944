"""A program and its record name the same places: debug handles, operators, modules and lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.inspect import Event, Inspector
from rushlight.inspect.trace.statistics import line_of, module_of


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.größe = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(torch.relu(self.größe(x)) + x, 1)


def _handles(event: Event) -> set[int]:
    handles: int | Sequence[int] | None = event.debug_handles
    return {handles} if isinstance(handles, int) else set(handles or ())


def _place(event: Event) -> tuple[Any, ...]:
    lines = {line_of(trace).rpartition("/")[2] for trace in event.stack_traces.values()}
    modules = {module_of(one) for one in event.module_hierarchy.values()}
    return _handles(event), lines, modules - {""}


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_handles_modules_and_lines_are_the_records(backend: str, tmp_path: Path) -> None:
    x, dump = torch.randn(2, 8), tmp_path / "m.etdp"
    record, path = tmp_path / "m.etrecord", tmp_path / "m.pte"
    program = rl.export(Network().eval(), (x,), backend=backend, etrecord=record)
    program.save(path, quiet=True)
    module = rl.load(path, trace=True)
    module(x.numpy())
    module.trace.save(dump)
    ours, theirs = (
        inspector.event_blocks[-1].events
        for inspector in (Inspector(dump, program=path), Inspector(dump, etrecord=record))
    )
    places = [_place(event) for event in ours if event.debug_handles is not None]
    assert set.union(*(handles for handles, _, _ in places)) == {1, 2, 3, 4}
    for mine, recorded in zip(ours, theirs, strict=True):
        if not mine.name.endswith("_CALL"):
            assert _place(mine) == _place(recorded)
