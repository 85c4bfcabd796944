"""`rushlight explain`: what it prints, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
ADD = GOLDEN / "add.pte"


def run(*args: Any) -> Any:
    return CliRunner().invoke(app, ["explain", *map(str, args)])


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Of a call that was refused."""
    module = rl.load(ADD, failure_report=tmp_path / "r.bin")
    with pytest.raises(rl.RunError):
        module(np.ones(3, np.int8), np.ones(3, np.int8))
    return tmp_path / "r.bin"


def test_text_and_json(report: Path) -> None:
    told = run(report, ADD)
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("a call of forward was refused: INVALID_ARGUMENT (0x12)\n")
    document = json.loads(run(report, ADD, "--json").stdout)
    assert document["report"]["phase"] == "input" and document["doubts"] == []
    assert run(report).stdout == told.stdout


def test_what_cannot_be_explained(report: Path, tmp_path: Path) -> None:
    assert "note: the report is of another program" in run(report, GOLDEN / "cond.pte").stdout
    for arguments, wanted in (
        ((ADD, ADD), "this is no report of a failure: it does not begin with RLFR"),
        ((tmp_path / "none.bin", ADD), "the report cannot be read: No such file"),
        ((report, report), "not a .pte file"),
        ((report, ADD, "--etrecord", ADD), "ETRecord"),
    ):
        told = run(*arguments)
        assert told.exit_code == 1 and wanted in told.stderr, told.stderr
