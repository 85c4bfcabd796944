"""Timelines keep the rules of the Trace Event Format, and hold what ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft202012Validator
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.inspect.trace.chrome import chrome_trace
from rushlight.schema.etdump import ETDump

Json = dict[str, Any]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.norm = nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(self.norm(torch.relu(self.first(x))), -1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chrome")
    x = torch.randn(4, 16)
    for backend in ("portable", "cpu", "xnnpack"):
        program = rl.export(Network().eval(), (x,), backend=backend)
        program.save(folder / f"{backend}.pte", quiet=True)
    return folder


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["trace", *map(str, arguments)])
    return result.exit_code, " ".join(result.output.split())


SCHEMA = json.loads(Path(__file__).with_name("trace_event.schema.json").read_text())
FORMAT = Draft202012Validator(SCHEMA)


def check_format(trace: Json) -> None:
    """The format's schema, and what it says of events together: they nest, and arrows bind."""
    FORMAT.validate(trace)
    arrows: dict[int, list[Json]] = {}
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in trace["traceEvents"]:
        assert event["pid"] == 1
        match event["ph"]:
            case "X":
                track = tracks.setdefault((event["pid"], event["tid"]), [])
                track.append((event["ts"], event["ts"] + event["dur"]))
            case "s" | "f":
                arrows.setdefault(event["id"], []).append(event)
    for ends in arrows.values():
        assert [end["ph"] for end in ends] == ["s", "f"] and ends[1]["bp"] == "e"
        for end in ends:  # on an event of its track
            spans = tracks[end["pid"], end["tid"]]
            assert any(start <= end["ts"] <= stop for start, stop in spans)
    for spans in tracks.values():  # events of a track nest, or follow each other
        open_until: list[float] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3
            open_until.append(end)


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_a_timeline(backend: str, folder: Path) -> None:
    path = folder / f"{backend}.json"
    assert run(folder / f"{backend}.pte", "-o", path, "--repeat", 3)[0] == 0
    trace = json.loads(path.read_text())
    check_format(trace)
    events = trace["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert [e["name"] for e in complete].count("Method::execute") == 3
    assert [e["name"] for e in complete].count("Method::init") == 1
    cumsum = [e for e in complete if "cumsum" in e["name"]]
    assert len(cumsum) == 3 and "test_chrome.py" in str(cumsum[0]["args"]["lines"])
    threads = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    if backend == "portable":
        assert threads == {"instructions"}
    else:
        assert len(threads) == 2 and any(e["ph"] == "s" for e in events)
        assert any("first" in str(e["args"].get("modules")) for e in complete)
    memory = [e["args"] for e in events if e["ph"] == "C"]
    instructions = [e for e in complete if e["tid"] == 1 and "instruction" in e["args"]]
    assert len(memory) == len(instructions)
    assert memory and max(sum(values.values()) for values in memory) >= 4 * 32 * 4


def test_a_trace_of_elsewhere(folder: Path) -> None:
    pte, dump = folder / "cpu.pte", folder / "phone.etdp"
    assert run(pte, "-o", dump, "--values", "all")[0] == 0
    assert (folder / "phone.etdp.values").stat().st_size > 0
    assert run(pte, "--etdump", dump, "-o", folder / "phone.json")[0] == 0
    check_format(json.loads((folder / "phone.json").read_text()))
    code, printed = run(pte, "-o", folder / "trace.txt")
    assert code != 0 and "give NAME.json or NAME.etdp" in printed
    code, printed = run(pte, "--etdump", folder / "none.etdp", "-o", folder / "x.json")
    assert code != 0 and "the trace cannot be read: No such file" in printed
    missing = folder / "none.pte"
    code, printed = run(missing, "--etdump", dump, "-o", folder / "x.json")
    assert code != 0 and "none.pte': No such file or directory; check the path" in printed
    code, printed = run(missing, "-o", folder / "x.json")
    assert code != 0 and "none.pte: no such file: check the path" in printed
    code, printed = run(pte, "-o", folder / "x.etdp", "--values", "some")
    assert code != 0 and "values='some': choose one of" in printed


def _changed(event: Json, **fields: Any) -> Json:
    return {"traceEvents": [{k: v for k, v in {**event, **fields}.items() if v is not None}]}


def test_the_schema_refuses_what_the_format_does_not_have() -> None:
    complete = {"name": "a", "cat": "b", "ph": "X", "ts": 0, "dur": 1.5, "pid": 1, "tid": 1}
    assert FORMAT.is_valid(_changed(complete))
    for wrong in (
        *({"dur": None}, {"dur": -1}, {"ts": "0"}, {"name": ""}, {"tid": None}, {"pid": "1"}),
        *({"ph": "x"}, {"extra": 1}, {"args": []}, {"ph": "C"}, {"ph": "s"}, {"ph": "M"}),
    ):
        assert not FORMAT.is_valid(_changed(complete, **wrong)), wrong
    counter = {"name": "c", "ph": "C", "ts": 0, "pid": 1, "args": {"bytes": 1}}
    assert FORMAT.is_valid(_changed(counter))
    assert not FORMAT.is_valid(_changed(counter, args={"bytes": "1"}))
    assert not FORMAT.is_valid({"traceEvents": [], "displayTimeUnit": "s"})


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


def test_programs_of_other_kinds(folder: Path) -> None:
    x = torch.ones(3)
    captured = torch.export.export(Branches(), (x,))
    made = rl.export({"größe": captured, "other": captured})
    made.save(folder / "methods.pte", quiet=True)
    rl.bundle(made, {"other": [(x,)]}).save(folder / "methods.bpte")
    for name in ("methods.pte", "methods.bpte"):
        assert run(folder / name, "-o", folder / "m.json", "--method", "größe") == (0, "")
        trace = json.loads((folder / "m.json").read_text())
        check_format(trace)
        names = {event["name"] for event in trace["traceEvents"]}
        assert {"Method::execute", "JF_CALL"} <= names


def test_a_trace_without_events(folder: Path) -> None:
    trace = chrome_trace(ETDump())
    check_format(trace)
    assert {event["ph"] for event in trace["traceEvents"]} == {"M"}
