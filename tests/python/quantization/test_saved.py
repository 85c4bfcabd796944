"""Quantised programs in files that `torch.export.save` wrote."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import torch

import rushlight as rl

READ = """
import sys
from rushlight.capture import load_exported
program = load_exported(sys.argv[1])
assert "dequantize_per_channel" in str(program.graph)
"""


def test_a_file_is_read_where_nothing_has_registered_its_operators(tmp_path):
    torch.manual_seed(0)
    x = torch.randn(2, 8)
    program = rl.quantize(torch.nn.Linear(8, 4).eval(), (x,), recipe="int8-dynamic")
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and "SerializeError" not in done.stderr, done.stderr
    result = rl.load(rl.export(path).buffer)(x.numpy())
    assert np.abs(result - program.module()(x).detach().numpy()).max() < 1e-5
