"""What `rushlight inspect` adds to a report from traces and records, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.errors import RunError
from rushlight.inspect import Inspector, parse_etrecord
from rushlight.runtime import TraceOptions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program, a trace with values, and records without and with inputs."""
    folder = tmp_path_factory.mktemp("inspected")
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    x = torch.randn(2, 4)
    program = rl.export(model, (x,), backend="cpu", etrecord=folder / "m.etrecord")
    program.save(folder / "m.pte", quiet=True)
    module = rl.load(program.buffer, trace=TraceOptions(values="all"))
    module(x.numpy())
    module.trace.save(folder / "m.etdp")
    record = parse_etrecord(folder / "m.etrecord")
    record.update_representative_inputs([x])
    record.save(folder / "inputs.etrecord")
    return folder


def inspect(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments)])
    return result.exit_code, result.output


def test_times_stacks_and_gaps(folder: Path) -> None:
    options = ["--trace", folder / "m.etdp", "--etrecord", folder / "inputs.etrecord"]
    code, printed = inspect(folder / "m.pte", "--json", *options, "--gap", "cosine")
    assert code == 0
    report = json.loads(printed)
    [times] = report["times"]
    assert times["method"] == "forward" and times["runs"] == 1 and times["timings"]
    handles = {
        str(source["handle"])
        for delegate in report["methods"][0]["delegates"]
        for node in delegate["nodes"]
        for source in node["sources"]
    }
    assert handles == set(report["stacks"]["forward"])
    assert all('File "' in stack for stack in report["stacks"]["forward"].values())
    covered = [call["name"] for call in report["methods"][0]["coverage"]]
    assert [gap["node"] for gap in report["gaps"]] == [covered[1], covered[2]]
    assert all(gap["gap"] > 0.999 for gap in report["gaps"])


def test_reports_of_failures(tmp_path: Path) -> None:
    table = nn.Embedding(20, 4)
    rl.export(table, (torch.tensor([1, 2]),), backend="cpu").save(tmp_path / "m.pte")
    rl.export(nn.ReLU(), (torch.ones(2),)).save(tmp_path / "other.pte")
    module = rl.load(tmp_path / "m.pte", failure_report=tmp_path / "r.bin")
    with pytest.raises(RunError, match="77"):
        module(np.array([1, 77]))
    code, printed = inspect(tmp_path / "m.pte", "--json", "--failure", tmp_path / "r.bin")
    assert code == 0
    [failure] = json.loads(printed)["failures"]
    assert (failure["method"], failure["instruction"], failure["place"]) == ("forward", 0, "0")
    assert failure["message"] == "index 77 at position 1 is not within 0..19"
    code, printed = inspect(tmp_path / "other.pte", "--failure", tmp_path / "r.bin")
    assert code == 0 and "the report is of another program" in " ".join(printed.split())


def test_a_trace_of_another_program(folder: Path) -> None:
    """What fits is shown; what does not is told as the Inspector tells it."""
    other = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 3)).eval()
    x = torch.randn(2, 4)
    rl.export(other, (x,)).save(folder / "other.pte", quiet=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    module = rl.load(rl.export(model, (x,)).buffer, trace=True)
    module(x.numpy())
    module.trace.save(folder / "relu.etdp")
    trace = ["--trace", folder / "relu.etdp"]
    code, printed = inspect(folder / "other.pte", *trace, "--html", folder / "page.html")
    assert code == 0
    wanted = "instruction 1 of 'forward' is a call of relu.out in the trace, and a kernel of"
    assert wanted in " ".join(printed.split())
    code, printed = inspect(folder / "other.pte", *trace, "--json")
    [times] = json.loads(printed[printed.index("{") :])["times"]
    assert {one["instruction"] for one in times["timings"]} == {0, 2}
    assert len(times["unknown"]) == 1
    with pytest.warns(RuntimeWarning) as caught:
        Inspector(folder / "relu.etdp", program=folder / "other.pte")
    assert times["unknown"][0] in str(caught[0].message)


def test_what_does_not_fit_is_said(folder: Path) -> None:
    pte, trace = folder / "m.pte", folder / "m.etdp"
    for options, message in (
        (["--gap", "MSE", "--trace", trace], "give --trace FILE.etdp, recorded with --values all"),
        (["--trace", folder / "none.etdp"], "the trace cannot be read: No such file"),
        (["--trace", pte], "this is no ETDump"),
        (["--etrecord", pte], "it is no zip archive"),
        (["--trace", trace, "--etrecord", folder / "m.etrecord", "--gap", "MSE"],
         "has no representative inputs"),
    ):  # fmt: skip
        code, printed = inspect(pte, "--json", *options)
        assert code != 0 and message in " ".join(printed.split()), printed


def test_a_record_without_its_edge_program(folder: Path) -> None:
    """It is told as a message, and the rest is shown."""
    record = folder / "cut.etrecord"
    with ZipFile(folder / "m.etrecord") as whole, ZipFile(record, "w") as cut:
        for name in whole.namelist():
            if not name.startswith("edge_dialect"):
                cut.writestr(name, whole.read(name))
    page = folder / "cut.html"
    options = ["--trace", folder / "m.etdp", "--etrecord", record, "--html", page]
    code, told = inspect(folder / "m.pte", *options)
    told = " ".join(told.split())
    assert code == 0 and "has no program 'edge_dialect_exported_program'" in told
    assert "warning: the ETRecord" in told and "UserWarning" not in told
    assert "aten.linear" in page.read_text("utf-8")
