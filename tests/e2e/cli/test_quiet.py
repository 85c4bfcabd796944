"""What the commands write to standard error is ours alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

MODELS = """
import torch

torch.manual_seed(0)  # else a relu may be zero for all data, of which a warning tells

class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.LSTM(4, 8, num_layers=2, bidirectional=True)

    def forward(self, x):
        return self.layer(x)[0]

def lstm():
    return Recurrent(), (torch.ones(3, 2, 4),)

def gru():
    return torch.nn.GRU(4, 8), (torch.ones(3, 2, 4),)

def images():
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
    return torch.nn.Sequential(*layers).eval(), (torch.ones(2, 3, 6, 6),)

def attention():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return layer.eval(), (torch.ones(1, 3, 8),)

def linear():
    return torch.nn.Linear(32, 8), (torch.ones(2, 32),)

def data():
    return [(torch.ones(2, 3, 6, 6),)]
"""
EXPORTS = (
    "export model.py:lstm",
    "export model.py:gru --backend cpu",
    "export model.py:images --backend xnnpack --dynamic input:0=1..4",
    "export model.py:attention --backend cpu",
    "export model.py:images --backend cpu --quantize int8 --calibrate model.py:data",
    "export model.py:linear --backend xnnpack --quantize int8-dynamic",
    "export model.py:linear --backend cpu --quantize int4-weights",
)
OTHERS = (
    "accuracy model.py:images --calibrate model.py:data",
    "doctor model.py:lstm",
    "recipes",
)
# A step that was done.
OURS = re.compile(r"✓ [\w: ]+  \d+\.\d s")
RUN = """
import sys
from rushlight.cli import app
for line in sys.argv[1:]:
    app(line.split(), standalone_mode=False)
"""


@pytest.mark.parametrize("commands", [EXPORTS, OTHERS], ids=["export", "others"])
def test_standard_error_holds_our_own_lines(commands: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODELS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN, *commands],
        cwd=tmp_path, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stderr.splitlines()
    assert lines and [line for line in lines if not OURS.fullmatch(line)] == []
