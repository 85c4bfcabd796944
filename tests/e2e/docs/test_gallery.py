"""Every page of the gallery tells the truth: what fails, what it says, and what works instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from gallery import ROOT, Page, read_page, run, words

import rushlight as rl
from rushlight.doctor import examine
from rushlight.ir.findings import KINDS

PAGES = {path.stem: path for path in sorted((ROOT / "docs" / "gallery").glob("*.md"))}
LISTED = [name for name in PAGES if name != "index"]


def test_every_kind_of_finding_has_a_page() -> None:
    assert set(LISTED) == set(KINDS)
    index = PAGES["index"].read_text("utf-8")
    for kind, title in KINDS.items():
        assert f"[{kind}]({kind}.md) | {title}" in index


@pytest.fixture(params=LISTED)
def page(request: Any) -> Page:
    return read_page(PAGES[request.param])


def test_the_failing_code_says_what_the_page_says(page: Page, tmp_path: Path) -> None:
    names, output = run(page.failing, tmp_path, f"failing_{page.kind.replace('-', '_')}")
    assert words(page.message) == output
    findings = examine(
        names["model"], names.get("args", ()), dynamic_shapes=names.get("dynamic_shapes")
    )
    kinds = [finding.kind for finding in findings.findings]
    assert page.kind in kinds, kinds
    assert all((ROOT / finding.page).is_file() for finding in findings.findings)


def test_the_rewrite_runs_as_eager_does(page: Page, tmp_path: Path) -> None:
    names, output = run(page.rewrite, tmp_path, f"rewrite_{page.kind.replace('-', '_')}")
    assert "Error" not in output, output
    model, args = names["model"], names["args"]
    module = rl.load(names["program"].buffer)
    for _ in range(2):  # a second call sees the state that the first one left
        with torch.no_grad():
            wanted = model(*args)
        got = module(*args)
        for ours, eager in zip(pytree.tree_leaves(got), pytree.tree_leaves(wanted), strict=True):
            torch.testing.assert_close(ours, eager)
    findings = examine(model, args, dynamic_shapes=names.get("dynamic_shapes"))
    assert not findings.findings, [str(f) for f in findings.findings]
    assert findings.signature.startswith("forward(")
