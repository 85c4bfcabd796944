"""Of a trace that was cut, what is there is shown, with a warning that counts what is lost."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.errors import LoadError
from rushlight.inspect import Inspector
from rushlight.inspect.trace.etdump import read_etdump
from rushlight.inspect.trace.events import EventBlock
from rushlight.runtime import TraceOptions


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(torch.relu(self.linear(x)), -1) / 3


@pytest.fixture(scope="module", params=["portable", "cpu"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with net.pte and a trace of three runs with values, net.etdp."""
    folder = tmp_path_factory.mktemp("cut")
    program = rl.export(Net().eval(), (torch.ones(2, 8),), backend=request.param)
    program.save(folder / "net.pte", quiet=True)
    module = rl.load(program.buffer, trace=TraceOptions(values="all"))
    for _ in range(3):
        module(np.ones((2, 8), np.float32))
    module.trace.save(folder / "net.etdp")
    return folder


def cut(folder: Path, size: int) -> Path:
    path = folder / "cut.etdp"
    path.write_bytes((folder / "net.etdp").read_bytes()[:size])
    return path


def _times(block: EventBlock) -> list[tuple[int | None, list[float]]]:
    return [(e.instruction, e.perf_data.raw if e.perf_data else []) for e in block.events]


def operators(inspector: Inspector) -> set[str]:
    events = [event for block in inspector.event_blocks for event in block.events]
    return {operator for event in events for operator in event.op_types}


def test_names_are_lost_first(files: Path) -> None:
    whole = Inspector(files / "net.etdp", program=files / "net.pte")
    dump = read_etdump(files / "net.etdp")
    texts = (files / "net.etdp").read_bytes().index(b"Method::execute")
    path = cut(files, texts - 4)
    with pytest.warns(RuntimeWarning, match=r"the trace is cut: [\d,]+ of [\d,]+ bytes are there"):
        shown = Inspector(path, program=files / "net.pte")
    assert shown.mismatches == []
    [before] = [b for b in whole.event_blocks if b.name == "Execute"]
    [after] = [b for b in shown.event_blocks if b.name == "Execute"]
    assert len(before.events) == len(after.events)
    assert _times(before) == _times(after)
    assert "aten.cumsum.default" in operators(shown)
    assert sum(len(run.events) for run in dump.run_data) > 0
    shown.print_data_tabular(io.StringIO())


def test_every_length(files: Path) -> None:
    whole = (files / "net.etdp").read_bytes()
    counts = []
    for size in range(12, len(whole), max(1, len(whole) // 150)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                dump = read_etdump(whole[:size])
                shown = Inspector(etdump_data=whole[:size], program=files / "net.pte")
            except LoadError as error:
                assert size < 1200 and "too few to show anything" in str(error)
                continue
        counts.append(sum(len(run.events) for run in dump.run_data))
        shown.print_data_tabular(io.StringIO())
    assert counts == sorted(counts) and counts[0] == 0
    assert counts[-1] == sum(len(run.events) for run in read_etdump(whole).run_data)


def test_what_is_lost_is_counted(files: Path) -> None:
    whole = (files / "net.etdp").read_bytes()
    with pytest.warns(RuntimeWarning) as caught:
        read_etdump(whole[: len(whole) // 2])
    told = str(caught[0].message)
    assert re.search(
        r"Lost: [\d,]+ texts, [\d,]+ events, [\d,]+ blocks; what is left is shown", told
    )


def test_bytes_behind_the_end(files: Path) -> None:
    whole = (files / "net.etdp").read_bytes()
    with pytest.raises(LoadError, match="bytes behind its end; give a file that holds one trace"):
        read_etdump(whole + whole)


def test_a_timeline_of_what_is_left(files: Path) -> None:
    whole = (files / "net.etdp").read_bytes()
    path = cut(files, len(whole) * 2 // 3)
    command = ["trace", str(files / "net.pte"), "-o", str(files / "t.json"), "--etdump", str(path)]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0 and "the trace is cut" in told.stderr
    assert "test_cut.py" in (files / "t.json").read_text()
