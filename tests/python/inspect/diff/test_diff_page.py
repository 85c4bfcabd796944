"""The page of `rushlight diff` in real Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from browsing import needs_chromium
from rushlight.cli import app

pytestmark = [pytest.mark.full, needs_chromium]


class Network(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, hidden), nn.Linear(hidden, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(self.second(torch.relu(self.first(x))), -1)


def test_the_page(page: Any, tmp_path: Path) -> None:
    x = torch.randn(3, 8)
    for name, hidden, backend in (("a<b", 16, "portable"), ("ü&c", 32, "cpu")):
        program = rl.export(Network(hidden).eval(), (x,), backend=backend)
        program.save(tmp_path / f"{name}.pte", quiet=True)
    html = tmp_path / "diff.html"
    done = CliRunner().invoke(
        app,
        [
            *("diff", str(tmp_path / "a<b.pte"), str(tmp_path / "ü&c.pte"), "--run"),
            *("--repeat", "6", "--html", str(html), "--fail-if", "size > 1x"),
            *("--fail-if", "error > 1000"),
        ],
    )
    assert done.exit_code == 1, done.output
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 1000, "height": 800})
    page.goto(html.as_uri())
    assert page.locator("h1").inner_text() == "a<b.pte → ü&c.pte"
    assert page.title().startswith("a<b.pte → ü&c.pte")
    heads = page.locator("section h2").all_inner_texts()
    assert heads[0] == "rules" and "forward: outputs" in heads and "forward: time" in heads
    verdicts = page.locator("section").first.locator("tbody tr").all_inner_texts()
    assert [verdict.split()[0] for verdict in verdicts] == ["failed", "passed"]
    bad, good = (
        page.locator(f"section:first-of-type tr:has-text('{text}') td").first.evaluate(
            "cell => getComputedStyle(cell).color"
        )
        for text in ("size > 1x", "error > 1000")
    )
    assert bad != good
    outputs = page.locator("section", has=page.get_by_text("forward: outputs", exact=True))
    assert "float32[3, 4]" in outputs.locator("tbody tr").inner_text()
    # Wide tables are scrolled by themselves, so that the page is not.
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.faults == [] and [url for url in asked if not url.startswith("file:")] == []
