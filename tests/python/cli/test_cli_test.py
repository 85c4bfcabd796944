"""`rushlight test`: what it prints, and its exit status."""

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


def run(*args: Any) -> Any:
    return CliRunner().invoke(app, ["test", *map(str, args)])


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """One case that passes, and one with NaN expected in the middle."""
    x = np.ones((1, 3), np.float32)
    y = rl.load(GOLDEN / "linear.pte")(x)
    wrong = np.array(y)
    wrong[0, 1] = np.nan
    cases = [(x,), rl.TestCase((x,), expected=wrong, name="wrong")]
    rl.bundle(GOLDEN / "linear.pte", cases).save(tmp_path / "m.bpte", quiet=True)
    return tmp_path / "m.bpte"


def test_all_pass() -> None:
    told = run(GOLDEN / "bundle.bpte")
    assert told.exit_code == 0, told.output
    assert "forward 1 4 rows" in told.stdout and told.stdout.endswith("all passed\n")


def test_a_failure(failing: Path) -> None:
    told = run(failing)
    assert told.exit_code == 1
    assert "forward 1 wrong: output 0 at [0, 1] is " in told.stdout
    assert "expected is nan; 1 of " in told.stdout
    assert told.stdout.endswith("1 of 2 test cases failed\n")
    assert run(failing, "--case", 0).exit_code == 0
    assert run(failing, "--case", "wrong").exit_code == 1


def test_json(failing: Path) -> None:
    told = run(failing, "--json", "--method", "forward")
    assert told.exit_code == 1
    document = json.loads(told.stdout)
    assert not document["passed"]
    right, wrong = document["cases"]
    assert right["passed"] and right["compared"] and right["got"] is None
    assert (wrong["name"], wrong["wrong"], wrong["place"]) == ("wrong", 1, [0, 1])
    assert (wrong["absolute"], wrong["expected"]) == ("inf", "nan")


def test_tolerances(tmp_path: Path) -> None:
    x = np.ones((1, 3), np.float32)
    y = np.asarray(rl.load(GOLDEN / "linear.pte")(x)) + 0.5
    rl.bundle(GOLDEN / "linear.pte", [rl.TestCase((x,), expected=y)]).save(
        tmp_path / "m.bpte", quiet=True
    )
    assert run(tmp_path / "m.bpte").exit_code == 1
    assert run(tmp_path / "m.bpte", "--atol", "0.6").exit_code == 0
    assert run(tmp_path / "m.bpte", "--atol", "-1").exit_code == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([GOLDEN / "linear.pte"], "not a bundled program (.bpte)"),
        ([GOLDEN / "none.bpte"], "No such file or directory"),
        (
            [GOLDEN / "bundle.bpte", "--method", "x"],
            "no test cases of 'x'; there are some of",
        ),
        ([GOLDEN / "bundle.bpte", "--case", "9"], "there is no test case 9"),
    ],
)
def test_what_cannot_be_tested(args: list[Any], message: str) -> None:
    told = run(*args)
    assert told.exit_code == 1 and message in told.stderr


def test_other_commands_take_a_bundled_program(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.float32))
    for command in (
        ["run", "--input", str(tmp_path / "x.npy"), "--random"],
        ["inspect"],
        ["profile", "--repeat", "1"],
    ):
        name, *options = command
        told = CliRunner().invoke(app, [name, str(GOLDEN / "bundle.bpte"), *options])
        assert told.exit_code == 0, told.output
