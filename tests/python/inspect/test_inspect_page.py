"""The page of a program in real Chromium: the graph with delegates, times, links between parts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from browsing import needs_chromium
from rushlight.cli import app
from rushlight.errors import RunError
from rushlight.inspect import Inspector, parse_etrecord
from rushlight.runtime import TraceOptions

pytestmark = [pytest.mark.full, needs_chromium]
BACKENDS = ["portable", "cpu", "xnnpack"]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.inner(x)) + x


class Network(nn.Module):
    def __init__(self, blocks: int = 3) -> None:
        super().__init__()
        self.blöcke = nn.ModuleList([Block() for _ in range(blocks)])
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for block in self.blöcke:
            x = block(x)
        return self.head(x), torch.cumsum(x, 1)


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


def _inspect(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For each backend a program, a trace of it and a record; another with two methods."""
    folder = tmp_path_factory.mktemp("pages")
    x = torch.randn(2, 16)
    for backend in BACKENDS:
        record = folder / f"{backend}.etrecord"
        program = rl.export(Network().eval(), (x,), backend=backend, etrecord=record)
        program.save(folder / f"{backend}.pte", quiet=True)
        module = rl.load(folder / f"{backend}.pte", trace=True)
        for _ in range(4):
            module(x.numpy())
        module.trace.save(folder / f"{backend}.etdp")
    branches = torch.export.export(Branches(), (x,))
    methods = {"first": branches, "zweite": torch.export.export(Network().eval(), (x,))}
    rl.export(methods, backend="cpu").save(folder / "methods.pte", quiet=True)
    return folder


def _open(page: Any, folder: Path, name: str, *options: object) -> None:
    html = folder / "page.html"
    _inspect(folder / name, "--html", html, *options)
    page.goto(html.as_uri())
    page.wait_for_selector("#graph .box")


def _traced(page: Any, folder: Path, backend: str) -> None:
    trace, record = folder / f"{backend}.etdp", folder / f"{backend}.etrecord"
    _open(page, folder, f"{backend}.pte", "--trace", trace, "--etrecord", record)


def _facts(page: Any) -> dict[str, str]:
    terms = page.locator(".instruction-detail dt").all_inner_texts()
    return dict(zip(terms, page.locator(".instruction-detail dd").all_inner_texts(), strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_drawing_opens_delegates(page: Any, folder: Path, backend: str) -> None:
    _traced(page, folder, backend)
    boxes = page.locator("#graph .box")
    inner = page.locator("#graph .box.inner")
    whole = boxes.count()
    assert (inner.count() > 3) == (backend != "portable")
    # An edge leads into each box but the input's, whatever delegate it is in.
    linked = page.evaluate(
        "document.querySelector('#graph .edge').getAttribute('d').split('M').length"
    )
    assert linked > whole - 1
    if backend != "portable":
        page.click(".zoom button:text('delegates')")
        assert inner.count() == 0 and boxes.count() < whole
        page.locator("#graph .box.k-delegate").first.click()
        assert page.locator(".links:has-text('Runs') button").count() > 3
    assert page.faults == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_tells_all_of_itself(page: Any, folder: Path, backend: str) -> None:
    _traced(page, folder, backend)
    page.fill("#search", "linear blöcke.1.inner")
    page.press("#search", "Enter")
    box = page.locator("#graph .box:not(.dim):not(.k-delegate)").first
    box.click()
    facts = _facts(page)
    assert "blöcke.1.inner" in facts["module"] and "forward" in facts["function"]
    # XNNPACK's runtime fuses the layer with what follows it, which has the time of both.
    times = ["of all operators", "the runtime fuses it"]
    assert times[backend == "xnnpack"] in facts["time"] and "operations" in facts["work"]
    assert facts["debug handle"]
    if backend != "portable":
        assert "aten.linear.default" in facts["operator"] and "16" in facts["result"]
        assert facts["backend"] in ("CpuBackend", "XnnpackBackend")
    code = page.locator(".instruction-detail .code").first
    assert "test_inspect_page.py:" in code.inner_text()
    code.locator("summary").click()
    stack = code.locator("pre").inner_text()
    assert stack.count("File ") >= 1 and "in forward" in stack
    assert page.faults == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_widths_of_the_flame_graph_are_the_traces_times(
    page: Any, folder: Path, backend: str
) -> None:
    _traced(page, folder, backend)
    frames = {
        frame["name"]: frame["value"]
        for frame in page.evaluate(
            "[...document.querySelectorAll('.frame')].map(({frame}) => "
            "({name: frame.name, value: frame.value}))"
        )
    }
    inspector = Inspector(folder / f"{backend}.etdp", program=folder / f"{backend}.pte")
    for module in ("blöcke", "head"):
        wanted = inspector.find_total_for_module(module)
        assert frames[module] == pytest.approx(wanted, rel=1e-6)
    whole = page.locator(".frame").first
    assert whole.evaluate("(box) => box.frame.name") == "forward"
    # A click enlarges, the tooltip has the numbers, and the way back is a button.
    module = page.locator(".frame.module", has_text="blöcke")
    module.hover()
    assert "share" in page.locator("#tip").inner_text()
    before = module.bounding_box()["width"]
    module.click()
    after = page.locator(".frame.module", has_text="blöcke").bounding_box()["width"]
    assert after > before * 0.999 and abs(after - whole.bounding_box()["width"]) < 2
    page.click("#flame >> text=show all")
    leaf = page.locator(".frame:not(.module)").last
    leaf.click()
    assert page.locator(".instruction-detail h3").count() == 1
    assert page.faults == []


def test_without_a_trace_widths_are_planned_work(page: Any, folder: Path) -> None:
    for backend in BACKENDS:
        _open(page, folder, f"{backend}.pte")
        assert "Estimated from the sizes" in page.inner_text("#flame")
        names = page.locator(".frame.module").all_inner_texts()
        assert "forward" in names and "blöcke" in names
        assert page.locator(".zoom button:has-text('time')").is_hidden()
    assert page.faults == []


def test_tables_and_graph_lead_to_each_other(page: Any, folder: Path) -> None:
    _traced(page, folder, "cpu")
    name = page.get_by_role("button", name="cumsum", exact=True).and_(page.locator("button.go"))
    row = page.locator("#tables section:has(h2:text('Where it runs')) tr").filter(has=name)
    row.locator("button.go").click()
    assert "cumsum" in page.inner_text(".instruction-detail h3")
    page.click(".mentions button:text('Where it runs')")
    assert page.locator("tr.on").inner_text() == row.inner_text()
    page.click(".mentions button:text('Time')")
    assert "cumsum" in page.locator("tr.on").inner_text()
    page.click(".arguments button")
    kept = page.locator("#memory .detail .links button")
    kept.first.click()
    assert page.locator(".instruction-detail h3").count() == 1
    inner = page.locator("#tables section:has(h2:text('Time')) button.go", has_text="/").first
    name = inner.inner_text()
    inner.click()
    assert name in page.inner_text(".instruction-detail h3")
    assert page.faults == []


def test_gaps_lead_to_the_graph(page: Any, folder: Path) -> None:
    x = torch.randn(2, 16)
    module = rl.load(folder / "cpu.pte", trace=TraceOptions(values="all"))
    module(x.numpy())
    module.trace.save(folder / "values.etdp")
    record = parse_etrecord(folder / "cpu.etrecord")
    record.update_representative_inputs([x])
    record.save(folder / "inputs.etrecord")
    options = ["--trace", folder / "values.etdp", "--etrecord", folder / "inputs.etrecord"]
    _open(page, folder, "cpu.pte", *options, "--gap", "SNR")
    section = page.locator("#tables section:has(h2:text('Numeric gap'))")
    button = section.locator("button.go").first
    name = button.inner_text()
    button.click()
    facts = _facts(page)
    assert name in facts.get("nodes", facts.get("node", "")).split(", ")
    page.click(".mentions button:text('Numeric gap')")
    assert name in page.inner_text("tr.on") and page.faults == []


def test_failures_lead_to_the_graph(page: Any, folder: Path) -> None:
    program = rl.export(nn.Embedding(20, 4), (torch.tensor([1, 2]),), backend="cpu")
    program.save(folder / "table.pte")
    module = rl.load(folder / "table.pte", failure_report=folder / "r.bin")
    with pytest.raises(RunError, match="77"):
        module(np.array([1, 77]))
    _open(page, folder, "table.pte", "--failure", folder / "r.bin")
    section = page.locator("#tables section:has(h2:text('What failed'))")
    assert "index 77 at position 1 is not within 0..19" in section.inner_text()
    section.locator("button.go").click()
    assert "embedding" in page.inner_text(".instruction-detail")
    page.click(".mentions button:text('What failed')")
    assert "index 77" in page.inner_text("tr.on") and page.faults == []


def test_methods_branches_and_other_traces(page: Any, folder: Path) -> None:
    html = folder / "page.html"
    printed = _inspect(folder / "methods.pte", "--html", html, "--trace", folder / "portable.etdp")
    assert "it has a run of 'forward'; methods here: first, zweite" in " ".join(printed.split())
    page.goto(html.as_uri())
    for method in ("zweite", "first"):
        page.click(f"#methods >> text={method}")
        assert page.locator("#graph .box").count() > 3
        for row in page.locator(".instructions li").all():
            row.click()
    assert "sin" in page.inner_text(".instructions")
    page.locator("#tables button.go", has_text="linear").first.click()
    assert page.get_attribute("#methods >> text=zweite", "aria-pressed") == "true"
    assert page.faults == []


def test_three_thousand_nodes_are_drawn_as_they_are_seen(page: Any, folder: Path) -> None:
    x = torch.randn(2, 16)
    rl.export(Network(1000).eval(), (x,), verify=False).save(folder / "large.pte", quiet=True)
    start = time.perf_counter()
    _open(page, folder, "large.pte")
    print(f"opened in {time.perf_counter() - start:.2f} s")
    boxes = page.locator("#graph .box")
    assert page.locator(".instructions li").count() >= 3000 > 100 > boxes.count() > 3
    page.fill("#search", "blöcke.700.inner")
    page.press("#search", "ArrowDown")
    selected = page.locator("#graph .box.on")
    assert selected.count() == 1 and selected.is_visible()
    page.click("[aria-label='Show all']")
    assert boxes.count() > 3000
    assert page.faults == []
