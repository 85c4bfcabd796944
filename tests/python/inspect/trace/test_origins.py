"""A program and its record name the same places: debug handles, operators, modules and lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.inspect import Event, Inspector
from rushlight.inspect.trace.statistics import line_of, module_of
from rushlight.schema.source import frames_in


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


class Branch(nn.Module):
    """A method of a program whose methods share a module."""

    def __init__(self, shared: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.shared, self.last = shared, last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.shared(x))


class Twice(Branch):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.neg(self.shared(self.shared(x))))


def _three_methods() -> dict[str, torch.export.ExportedProgram]:
    shared, x = Network(), torch.randn(2, 8)
    models = {
        "eins": Branch(shared, nn.Sigmoid()),
        "zwei": Twice(shared, nn.Tanh()),
        "drei": Branch(nn.Sequential(shared, nn.Softmax(-1)), nn.Hardtanh()),
    }
    return {name: torch.export.export(one.eval(), (x,)) for name, one in models.items()}


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack", ["xnnpack", "cpu", "portable"]])
def test_each_method_has_the_stacks_of_its_own_graph(backend: Any, tmp_path: Path) -> None:
    """Also each form of a fat program."""
    methods = _three_methods()
    record, path = tmp_path / "m.etrecord", tmp_path / "m.pte"
    rl.export(methods, backend=backend, etrecord=record).save(path, quiet=True)
    result = CliRunner().invoke(app, ["inspect", str(path), "--json", "--etrecord", str(record)])
    report = json.loads(result.stdout)
    forms = ["", "@xnnpack", "@cpu"] if isinstance(backend, list) else [""]
    plans = {f"{name}{form}": name for form in forms for name in methods}
    assert set(report["stacks"]) == set(plans)
    for plan, method in plans.items():
        calls = [n for n in methods[method].graph.nodes if n.op == "call_function"]
        stacks = report["stacks"][plan]
        assert len(stacks) == len(calls)
        for handle, stack in stacks.items():  # handles count the calls of the captured graph
            lines = (str(calls[int(handle) - 1].meta["stack_trace"]), stack)
            first, second = ([f.position for f in frames_in(text)] for text in lines)
            assert first == second and first


@pytest.mark.parametrize("form", ["xnnpack", "cpu", "portable"])
def test_a_trace_of_a_form_has_the_places_of_its_method(form: str, tmp_path: Path) -> None:
    methods = _three_methods()
    record, path, dump = (tmp_path / f"m.{end}" for end in ("etrecord", "pte", "etdp"))
    program = rl.export(methods, backend=["xnnpack", "cpu", "portable"], etrecord=record)
    program.save(path, quiet=True)
    module = rl.load(path, trace=True, backend=form)
    for name in methods:
        module[name](torch.randn(2, 8).numpy())
    module.trace.save(dump)
    ours, theirs = Inspector(dump, program=path), Inspector(dump, etrecord=record)
    assert ours.mismatches == theirs.mismatches == []
    runs = [block for block in ours.event_blocks if block.name == "Execute"]
    assert len(runs) == 3
    last = {"eins": "sigmoid", "zwei": "tanh", "drei": "hardtanh"}
    for mine, recorded in zip(ours.event_blocks, theirs.event_blocks, strict=True):
        for one, other in zip(mine.events, recorded.events, strict=True):
            if not one.name.endswith("_CALL"):
                assert _place(one) == _place(other)
    for block in (block for block in theirs.event_blocks if block.name == "Execute"):
        operators = " ".join(op for event in block.events for op in event.op_types)
        assert last[block.method.partition("@")[0]] in operators


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
