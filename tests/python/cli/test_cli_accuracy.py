"""`rushlight accuracy`, as a user calls it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app

MODEL = """
import torch

def build():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    return net.eval(), (torch.randn(2, 8),)

def data():
    draw = torch.Generator().manual_seed(1)
    return [(torch.randn(2, 8, generator=draw),) for _ in range(4)]

def score(module):
    net, _ = build()
    return -max(float((module(*x) - net(*x)).abs().max()) for x in data())

number = 3
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(app, ["accuracy", "model.py:build", *arguments])


def test_layers_are_compared(model):
    options = ("--calibrate", "model.py:data", "--backend", "portable", "--html", "loss.html")
    result = run(*options, "-o", "model.pte")
    assert result.exit_code == 0, result.output
    assert "what quantization costs, by layer: 4 inputs on portable" in result.output
    assert "outputs" in result.output and "dB" in result.output
    assert (model / "loss.html").read_text().count("<svg") == 2
    assert rl.load(model / "model.pte").methods == ("forward",)


def test_a_search_ends_with_its_table_and_the_comparison(model):
    options = ("--calibrate", "model.py:data", "--metric", "model.py:score", "--max-drop", "0.5")
    result = run(*options, "--recipe", "int8", "--backend", "portable", "--resume", "trials")
    assert result.exit_code == 0, result.output
    assert "precision of each layer" in result.output
    assert "what quantization costs, by layer" in result.output
    assert len((model / "trials").read_text().splitlines()) > 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --inputs, or --calibrate"),
        (("--inputs", "model.py:data"), "finds the ranges of values by running the model"),
        (("--calibrate", "model.py:nothing"), "has no 'nothing'"),
        (("--calibrate", "model.py:data", "--metric", "model.py:score"), "both --metric and"),
        (("--calibrate", "model.py:data", "--quantize", "int9"), "no recipe 'int9'"),
    ],
)
def test_what_is_missing_or_wrong_is_said(model, arguments, message):
    result = run(*arguments)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
