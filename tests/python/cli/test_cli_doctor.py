"""The page of `rushlight doctor` in real Chromium: findings, their code, and the graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from browsing import needs_chromium
from rushlight.cli import app

MODEL = """
import torch
from torch import nn

@torch.library.custom_op("doctor_page::shift", mutates_args=())
def shift(x: torch.Tensor) -> torch.Tensor:
    return x + 1

@shift.register_fake
def _(x):
    return torch.empty_like(x)

class Part(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # "</script><img src=x onerror=alert(1)>"
            return x.relu()
        return -x

class Model(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.größe, self.teil, self.calls = nn.Linear(4, 4), part, 0

    def forward(self, x):
        x = self.teil(self.größe(x))
        self.calls += 1
        return shift(x @ x.T), torch.nonzero_static(x, size=3)

class Outside(nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy())

class Broken(nn.Module):
    def forward(self, x):
        return x @ torch.ones(3, 3)

class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.outside, self.model = Outside(), Model(Part())

    def forward(self, x):
        return self.model(self.outside(x))

class Choice(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: shift(x), lambda x: x * 2, (x,))

X = torch.ones(4, 4)

def draft():
    return Model(Part()), (X,)

def whole():
    return Model(nn.ReLU()), (X,)

def parts():
    return Both(), (X,)

def nothing():
    return Broken(), (X,)

def choice():
    return Choice(), (X,)

def methods():
    return {"good": torch.export.export(nn.ReLU(), (X,)),
            "bad": torch.export.export(Model(nn.ReLU()), (X,))}

def healthy():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU()), (X,)
"""
# By function: the exit status, how many findings block, and the graphs.
KINDS = {
    "draft": (1, 3, ["forward: draft"]),
    "whole": (1, 2, ["forward"]),
    "parts": (1, 4, ["forward: model"]),
    "nothing": (1, 1, []),
    "choice": (1, 1, ["forward"]),
    "methods": (1, 2, ["good", "bad"]),
    "healthy": (0, 0, ["forward"]),
}


def _write(folder: Path, name: str, *options: str) -> tuple[int, Path]:
    file, html = folder / "modell.py", folder / f"{name}.html"
    file.write_text(MODEL, "utf-8")
    done = CliRunner().invoke(app, ["doctor", f"{file}:{name}", "--html", str(html), *options])
    assert f"wrote {html}" in " ".join(done.output.split())
    return done.exit_code, html


@pytest.mark.full
@needs_chromium
@pytest.mark.parametrize("name", KINDS)
def test_a_page_of_findings(name: str, page: Any, tmp_path: Path) -> None:
    status, blocking, graphs = KINDS[name]
    code, html = _write(tmp_path, name)
    assert code == status
    page.goto(html.as_uri())
    page.wait_for_selector("#summary .tile")
    assert page.locator(".finding.blocks").count() == blocking
    shown = page.locator("#methods button").all_inner_texts()
    title = page.inner_text(".signature").partition("(")[0] if graphs else ""
    assert (shown or [title][: len(graphs)]) == graphs
    assert page.inner_text(".tile .value") == ("is blocked" if blocking else "works")
    for card in page.locator(".finding").all():
        assert "undefined" not in card.inner_text() and "docs/gallery" in card.inner_text()
        for button in card.locator("button.go").all()[:3]:
            button.click()
            assert page.locator("#graph .box.on.blocked").count() == card.evaluate(
                "card => Number(card.classList.contains('blocks'))"
            )
            page.click(".mentions button:text('What is in the way')")
            assert page.locator(".finding.on").count() == 1
    for row in page.locator(".instructions li").all()[:40]:
        row.click()
    page.click("#theme")
    assert page.locator("img").count() == 0 and page.faults == []


@pytest.mark.full
@needs_chromium
def test_a_finding_shows_its_place(page: Any, tmp_path: Path) -> None:
    _, html = _write(tmp_path, "whole")
    page.goto(html.as_uri())
    card = page.locator(".finding", has_text="no kernel for doctor_page::shift.out")
    terms = dict(zip(card.locator("dt").all_inner_texts(), card.locator("dd").all_inner_texts(),
                     strict=True))  # fmt: skip
    line = MODEL.splitlines().index(
        "        return shift(x @ x.T), torch.nonzero_static(x, size=3)"
    )
    assert terms["line"].endswith(f"modell.py:{line + 1}")
    assert terms["operator"] == "doctor_page.shift.default" and int(terms["debug handle"]) > 0
    assert "shift(x @ x.T)" in card.locator(".here").inner_text()
    assert "RUSHLIGHT_KERNEL(doctor_page, shift_out)" in card.locator(".advice").inner_text()
    card.locator("summary", has_text="Stack trace").click()
    assert "in forward" in card.locator("details pre").first.inner_text()
    card.locator("button.go").first.click()
    assert page.inner_text(".instruction-detail h3").endswith("doctor_page.shift.default")
    assert terms["debug handle"] in page.inner_text(".instruction-detail .facts").split()
    assert page.faults == []
