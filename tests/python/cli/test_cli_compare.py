"""`rushlight bench --compare`: who takes part, what is told of each, what is refused."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app, plot
from rushlight.peers import compare
from rushlight.peers.compare import Row

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU())

    def forward(self, x):
        return self.layers(x)

class Whole(torch.nn.Module):
    def forward(self, x):
        return x // 2

def build():
    return Net(), (torch.randn(3, 8),)

def whole():
    return Whole(), (torch.arange(6),)

class Mixed(torch.nn.Module):
    def forward(self, x):
        return (x * 2).bfloat16(), None, 7, torch.fft.fft(x)

def mixed():
    return Mixed(), (torch.randn(3, 8),)

def numbered():
    return Net(), (torch.randn(3, 8, dtype=torch.bfloat16),)

def floating():
    return Net(), (torch.randn(3, 8).to(torch.float8_e4m3fn),)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def _run(*args: str) -> Any:
    return CliRunner().invoke(app, ["bench", *args])


def _good(*args: str) -> str:
    result = _run(*args, "--compare", "--repeat", "3", "--warmup", "0", "--threads", "1")
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def _bad(*args: str) -> str:
    result = _run(*args)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    return str(result.stderr)


def _only(*names: str) -> list[str]:
    return [word for name in names for word in ("--only", name)]


def _rows(text: str) -> dict[str, list[str]]:
    """The cells of the rows with figures, by title."""
    peers = {}
    for line in text.splitlines():
        cells = re.split(r" {2,}", line.strip())
        if len(cells) == 7 and cells[3].endswith("x"):
            peers[cells[0]] = cells[1:]
    return peers


def test_forms_and_eager_in_one_table(folder: Path) -> None:
    text = _good("model.py:build", *_only("portable", "cpu", "eager", "openvino"))
    rows = _rows(text)
    eager = f"PyTorch eager {torch.__version__.partition('+')[0]}"
    assert set(rows) == {"Rushlight portable", "Rushlight cpu", eager}
    medians = [float(cells[0]) for cells in rows.values()]
    assert medians == sorted(medians) and medians[0] > 0  # the fastest first
    for median, span, of_fastest, load, memory, error in rows.values():
        low, high = (float(part) for part in span.split(" – "))
        assert low <= float(median) <= high and float(load) > 0 and float(memory) >= 0
        assert float(of_fastest[:-1]) == pytest.approx(float(median) / medians[0], rel=0.02)
        assert float(error) <= 1e-5
    assert next(iter(rows.values()))[2] == "1.00x"
    assert "model.py:build, 1 thread" in text


def test_results_of_all_kinds_are_held_to_eagers(folder: Path) -> None:
    """Numbers, nothing at all, complex numbers, and a dtype that NumPy lacks."""
    rows = _rows(_good("model.py:mixed", *_only("portable", "eager")))
    assert len(rows) == 2 and all(float(cells[-1]) <= 1e-5 for cells in rows.values())


def test_what_is_not_installed_is_named(folder: Path) -> None:
    text = _good("model.py:build", *_only("portable", "executorch"))
    assert "not installed: ExecuTorch. --peer names the Python" in text.replace("\n", " ")


def test_a_form_that_takes_nothing_says_so(folder: Path) -> None:
    text = _good("model.py:whole", *_only("portable", "cpu"))
    assert list(_rows(text)) == ["Rushlight portable"]
    assert re.search(r"Rushlight cpu +the backend takes no part of this model", text)


def test_nothing_that_could_be_timed(folder: Path) -> None:
    result = _run("model.py:whole", "--compare", *_only("cpu"))
    assert result.exit_code == 1 and "nothing could be timed" in result.stderr
    assert "takes no part of this model" in result.stdout


def test_a_program_is_compared_with_itself_alone(folder: Path) -> None:
    x = (torch.randn(3, 8),)
    fat = rl.export(torch.nn.Linear(8, 4).eval(), x, backend=["cpu", "portable"])
    fat.save("fat.pte", quiet=True)
    text = _good("fat.pte")
    assert set(_rows(text)) == {"Rushlight cpu", "Rushlight portable"}
    assert "only itself can be compared" in text
    assert "not installed: ExecuTorch" in text
    assert set(_rows(_good("fat.pte", *_only("cpu")))) == {"Rushlight cpu"}


def test_a_program_that_executorch_cannot_run(folder: Path) -> None:
    program = rl.export(torch.nn.Linear(8, 4).eval(), (torch.randn(3, 8),), backend="cpu")
    program.save("cpu.pte", quiet=True)
    text = _good("cpu.pte")
    assert set(_rows(text)) == {"Rushlight"} and "ExecuTorch cannot run it: " in text


@pytest.mark.interop
def test_executorch_runs_the_same_file(folder: Path, executorch_python: Path) -> None:
    program = rl.export(torch.nn.Linear(8, 4).eval(), (torch.randn(3, 8),))
    program.save("plain.pte", quiet=True)
    rows = _rows(_good("plain.pte", "--peer", str(executorch_python)))
    assert set(rows) == {"Rushlight", "ExecuTorch 1.4.1"}


@pytest.mark.interop
def test_executorch_beside_us(folder: Path, executorch_python: Path) -> None:
    text = _good("model.py:build", "--peer", str(executorch_python), *_only("cpu", "executorch"))
    rows = _rows(text)
    assert set(rows) == {"Rushlight cpu", "ExecuTorch 1.4.1"}
    assert float(rows["ExecuTorch 1.4.1"][-1]) <= 1e-5


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing.pte", "--compare"], "no such file"),
        (["model.py:nothing", "--compare"], "has no 'nothing'"),
        (
            ["model.py:build", "--compare", "--only", "tpu"],
            "--only 'tpu' is not one of the runtimes",
        ),
        (["model.py:build", "--compare", "--input", "x.npy"], "--input and --data go with a .pte"),
        (["model.py:build", "--compare", "--operators"], "--operators does not go with --compare"),
        (["model.py:build", "--compare", "--backend", "cpu"], "--backend does not go with"),
        (["model.py:build", "--compare", "--plot", "x.txt"], "ends in .png or .svg"),
        (["model.py:build", "--compare", "--plot", "no/x.png"], "there is no such folder"),
        (["model.py:numbered", "--compare"], "not torch.bfloat16"),
        (["model.py:floating", "--compare"], "not torch.float8_e4m3fn"),
        (["model.pte", "--plot", "x.png"], "go with --compare"),
        (
            ["model.py:build", "--compare", "--only", "executorch", "--peer", "no/python"],
            "--peer 'no/python' does not run",
        ),
        (
            ["model.py:build", "--compare", "--only", "executorch", "--peer", "/bin/false"],
            "--peer '/bin/false' does not run",
        ),
    ],
)
def test_refusals(args: list[str], message: str, folder: Path) -> None:
    assert message in " ".join(_bad(*args).split())


def test_no_runs_are_wrong_usage(folder: Path) -> None:
    assert _run("model.py:build", "--compare", "--repeat", "0").exit_code == 2


# --- the picture ----------------------------------------------------------------------------------


def test_a_missing_matplotlib_is_said_before_anything_is_timed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    message = _bad("model.py:build", "--compare", "--plot", "out.png")
    assert "pip install 'rushlight[plot]'" in message and "capture" not in message


def test_the_picture_where_matplotlib_is_installed(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [Row("Rushlight cpu", seconds=[0.001, 0.002, 0.003]), Row("slow", seconds=[0.2])]
    plot.check("out.svg")
    plot.write("out.svg", "a title", rows)
    text = Path("out.svg").read_text()
    assert "<svg" in text and text.count("<!-- ") > 5
    assert "Rushlight cpu" in text and "a title" in text
    with pytest.raises(rl.RunError, match="cannot write"):
        Path("taken.png").mkdir()
        plot.write("taken.png", "a title", rows)


# --- figures --------------------------------------------------------------------------------------


def test_percentiles() -> None:
    row = Row("x", seconds=[float(i) for i in range(11)])
    assert row.median == 5 and row.p10_p90 == (1, 9)
    assert Row("x", seconds=[2.0]).p10_p90 == (2, 2)


def test_difference_from_what_was_expected() -> None:
    expected = {"in0": np.ones(2), "out0": np.array([4.0, -2.0]), "out1": np.zeros(3)}
    assert compare._difference(expected, expected) == 0
    near = {"out0": np.array([4.0, -1.0]), "out1": np.zeros(3)}
    assert compare._difference(expected, near) == 0.25
    assert compare._difference(expected, {"out0": near["out0"]}) == math.inf
    assert compare._difference(expected, {**near, "out1": np.zeros(2)}) == math.inf


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_difference_of_what_is_no_number(odd: float) -> None:
    expected = {"out0": np.array([4.0, odd])}
    assert compare._difference(expected, expected) == 0
    assert compare._difference(expected, {"out0": np.array([3.0, odd])}) == 0.25
    for a, b in ((odd, 1.0), (1.0, odd)):
        difference = compare._difference({"out0": np.array([4.0, a])}, {"out0": np.array([4.0, b])})
        assert difference == math.inf


def test_difference_of_complex_numbers() -> None:
    expected, actual = ({"out0": np.array([x])} for x in (3 + 4j, 3 - 4j))
    assert compare._difference(expected, actual) == 8 / 5
