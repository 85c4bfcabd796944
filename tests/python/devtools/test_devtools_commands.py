"""ExecuTorch's scripts of developer tools: tables of traces, sizes, statistics, a browser."""

from __future__ import annotations

import base64
import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import rushlight as rl
from rushlight.devtools import inspector_cli, profiling_csv, size_information, visualization
from rushlight.devtools.inspector import compare_results
from rushlight.devtools.vgf_statistics import (
    SCHEMA,
    parse_vgf_neural_statistics_delegate_metadata,
    parse_vgf_neural_statistics_metadata,
)
from rushlight.errors import RunError
from rushlight.inspect.trace.etdump import read_etdump
from rushlight.record.etrecord import parse_etrecord
from rushlight.runtime import TraceOptions
from rushlight.schema import etdump


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record, and the trace of a run with its outputs."""
    made = tmp_path_factory.mktemp("commands")
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()
    x = torch.randn(1, 3)
    program = rl.export(model, (x,), etrecord=made / "m.etrecord")
    module = rl.load(program.buffer, trace=TraceOptions(values="all"))
    module(x.numpy())
    module.trace.save(made / "m.etdp")
    return made


def _run(monkeypatch: pytest.MonkeyPatch, main: Any, *words: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["command", *map(str, words)])
    main()


Patch = pytest.MonkeyPatch
Captured = pytest.CaptureFixture[str]


def test_a_trace_is_printed_and_written(
    folder: Path, tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    out, names = tmp_path / "events.tsv", ("etdump_path", "etrecord_path", "tsv_path")
    paths = (folder / "m.etdp", folder / "m.etrecord", out)
    words = [word for n, p in zip(names, paths, strict=True) for word in (f"--{n}", p)]
    _run(monkeypatch, inspector_cli.main, *words, "--target_time_scale", "us")
    assert "native_call_relu.out" in capsys.readouterr().out
    with out.open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert "native_call_relu.out" in [row["event_name"] for row in rows]
    csv_path = tmp_path / "events.csv"
    given = ("--etdump_path", folder / "m.etdp", "--output", csv_path)
    _run(monkeypatch, profiling_csv.main, *given)
    with csv_path.open() as file:
        names_of_all = [row["event_name"] for row in csv.DictReader(file)]
    assert [name for name in names_of_all if name != "OPERATOR_CALL"] == [
        row["event_name"] for row in rows
    ]


def test_outputs_are_compared_and_drawn(
    folder: Path, tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    shown: list[list[float]] = []
    monkeypatch.setattr(
        pyplot, "show", lambda: shown.append([bar.get_height() for bar in pyplot.gca().patches])
    )
    told = compare_results([torch.ones(2), 3], [torch.zeros(2), 3], ["mse"], plot=True)
    assert told == {"mse": [1.0, None]}
    assert shown[0][0] == 1.0 and len(shown[0]) == 2
    words = [
        *("--debug_buffer_path", folder / "m.etdp.values", "--compare_results"),
        *("--etrecord_path", tmp_path / "with.etrecord", "--etdump_path"),
    ]
    record = parse_etrecord(folder / "m.etrecord")
    record.update_reference_outputs([[torch.ones(1, 2)]])
    record.save(tmp_path / "with.etrecord")
    with pytest.raises(RunError, match="update_reference_outputs"):
        _run(monkeypatch, inspector_cli.main, *words, folder / "m.etdp")
    trace = read_etdump(folder / "m.etdp")
    for run in trace.run_data:
        run.bundled_input_index = 0
    (tmp_path / "case.etdp").write_bytes(etdump.pack(trace))
    shown.clear()
    _run(monkeypatch, inspector_cli.main, *words, tmp_path / "case.etdp")
    assert "mse" in capsys.readouterr().out
    assert len(shown) == 3


def test_sizes_of_a_record_are_written(folder: Path, tmp_path: Path, monkeypatch: Patch) -> None:
    out = tmp_path / "sizes.json"
    given = ("--etrecord_path", folder / "m.etrecord", "--output_path", out)
    _run(monkeypatch, size_information.main, *given)
    [sizes] = json.loads(out.read_text())
    assert sizes["overview"]["total_tensor_data_size"] == (3 * 2 + 2) * 4


STATISTICS: dict[str, Any] = {
    "schema": SCHEMA,
    "schema_version": 1,
    "segments": [
        {
            "name": "first",
            "statistics_info": {"available": True, "encoding": "base64", "data": "YWJj"},
            "statistics_memory": {"available": False},
        }
    ],
}


def test_statistics_of_vgf_are_read_among_other_metadata() -> None:
    text = json.dumps(STATISTICS)
    others = [b"\xff", b"{}", b'["x"]', b"", "plain", None, f'{{"schema": "a", "of": "{SCHEMA}"}}']
    told = parse_vgf_neural_statistics_delegate_metadata([*others, text, text.encode()])
    assert len(told) == 2 and told[0] == told[1]
    [segment] = told[0]["segments"]
    assert segment["statistics_info"]["raw_data"] == base64.b64decode("YWJj")
    assert segment["statistics_memory"] == {"available": False, "raw_data": b""}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other"}, "another schema"),
        ({"schema_version": 2}, "version is 2"),
        ({"segments": [{"debug_database": {"available": True, "encoding": "x"}}]}, "'x', not"),
        (
            {"segments": [{"debug_database": {"available": True, "encoding": "base64",
                                              "data": "?"}}]},
            "not in base64",
        ),
    ],
)  # fmt: skip
def test_statistics_that_cannot_be_read_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_vgf_neural_statistics_metadata(json.dumps({**STATISTICS, **change}))
    with pytest.raises(ValueError, match="no JSON"):
        parse_vgf_neural_statistics_delegate_metadata([f"{SCHEMA} {{"])


def test_model_explorer_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "model_explorer", None)
    monkeypatch.setenv("PATH", "")
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(1),))
    with pytest.raises(RunError, match="pip install ai-edge-model-explorer"):
        visualization.visualize(program)
    with pytest.raises(RunError, match="pip install ai-edge-model-explorer"):
        visualization.ModelExplorerServer()
