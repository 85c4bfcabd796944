"""A trace of another program is told by what its instructions call, and shown without lines."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.inspect import Inspector

BACKENDS = ("portable", "cpu", "xnnpack")


class First(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(torch.relu(self.linear(x)), -1)


class Second(First):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.flip(torch.sigmoid(self.linear(x)) * 2, (0,))


def saved(folder: Path, name: str, program: rl.Program, args: list[np.ndarray]) -> None:
    """A program and its trace: NAME.pte and NAME.etdp."""
    program.save(folder / f"{name}.pte", quiet=True)
    module = rl.load(program.buffer, trace=True)
    for method in module.methods:
        module[method](*args)
    module.trace.save(folder / f"{name}.etdp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("identity")
    x = torch.randn(3, 8)
    for model in (First().eval(), Second().eval()):
        for backend in BACKENDS:
            name = f"{type(model).__name__}_{backend}"
            program = rl.export(model, (x,), backend=backend, etrecord=folder / f"{name}.etrecord")
            saved(folder, name, program, [x.numpy()])
    both = {name: torch.export.export(First().eval(), (x,)) for name in ("one", "two")}
    saved(folder, "methods", rl.export(both), [x.numpy()])
    return folder


def lines(inspector: Inspector) -> int:
    events = [event for block in inspector.event_blocks for event in block.events]
    return sum(bool(event.stack_traces) for event in events)


@pytest.mark.parametrize("kind", ["program", "etrecord"])
@pytest.mark.parametrize("name", [f"{m}_{b}" for m in ("First", "Second") for b in BACKENDS])
def test_a_trace_fits_its_own_program_and_no_other(name: str, kind: str, folder: Path) -> None:
    suffix = "pte" if kind == "program" else "etrecord"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = Inspector(folder / f"{name}.etdp", **{kind: folder / f"{name}.{suffix}"})
    assert own.mismatches == [] and lines(own) > 0
    model, _, backend = name.partition("_")
    for other in BACKENDS:
        if other == backend:
            continue
        with pytest.warns(RuntimeWarning, match="the trace is of another program: instruction"):
            wrong = Inspector(
                folder / f"{name}.etdp", **{kind: folder / f"{model}_{other}.{suffix}"}
            )
        assert len(wrong.mismatches) == 1 and lines(wrong) == 0
        assert len(wrong.event_blocks) == len(own.event_blocks)  # what can be shown is shown


def test_another_model_on_the_same_backend(folder: Path) -> None:
    with pytest.warns(RuntimeWarning) as caught:
        Inspector(folder / "First_portable.etdp", program=folder / "Second_portable.pte")
    message = str(caught[0].message)
    assert "instruction 1 of 'forward' is a call of relu.out in the trace" in message
    assert "a kernel of aten::sigmoid.out in this program" in message


def test_a_method_that_is_not_there(folder: Path) -> None:
    assert Inspector(folder / "methods.etdp", program=folder / "methods.pte").mismatches == []
    with pytest.warns(RuntimeWarning, match="it has a run of 'one'; methods here: forward"):
        wrong = Inspector(folder / "methods.etdp", program=folder / "First_portable.pte")
    assert len(wrong.mismatches) == 2


def test_a_timeline_of_another_program(folder: Path) -> None:
    out = folder / "t.json"
    trace = ["trace", str(folder / "First_cpu.pte"), "-o", str(out), "--etdump"]
    told = CliRunner().invoke(app, [*trace, str(folder / "First_cpu.etdp")])
    assert told.exit_code == 0 and not told.stderr
    assert "test_identity.py" in out.read_text()
    told = CliRunner().invoke(app, [*trace, str(folder / "Second_portable.etdp")])
    assert told.exit_code == 0 and "the trace is of another program than" in told.stderr
    document = json.loads(out.read_text())
    assert "test_identity.py" not in out.read_text() and len(document["traceEvents"]) > 5
