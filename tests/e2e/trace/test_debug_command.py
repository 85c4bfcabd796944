"""`rushlight debug`, from the command line: a clean model, a faulty device, and wrong traces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.debug import debug
from rushlight.errors import RunError
from rushlight.runtime import TraceOptions

MODEL = """
import torch
from torch import nn

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 3)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.second(hidden).softmax(-1)

def build(scale=1.0):
    torch.manual_seed(0)
    model = Network().eval()
    model.second.weight.data *= scale
    return model, (torch.linspace(-1, 1, 8).reshape(2, 4),)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(MODEL)
    return tmp_path


def recorded(folder: Path, values: str = "all", scale: float = 0.5, size: int = 0) -> Path:
    space: dict[str, object] = {"__name__": "m"}
    exec(compile(MODEL, str(folder / "m.py"), "exec"), space)
    model, (x,) = space["build"](scale)  # type: ignore[operator]
    if size:
        model, x = nn.Sequential(nn.Linear(4, size), nn.Tanh()).eval(), x
    pte = rl.export(model, (x,), backend="cpu", verify=False).buffer
    module = rl.load(pte, trace=TraceOptions(values=values))  # type: ignore[arg-type]
    module(x.numpy())
    module.trace.save(folder / "device.etdp")
    return folder / "device.etdp"


def run(folder: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(
        app, ["debug", f"{folder / 'm.py'}:build", "--backend", "cpu", *options]
    )
    return result.exit_code, result.output


def test_a_model_without_faults(folder: Path) -> None:
    code, printed = run(folder, "--html", str(folder / "values.html"))
    assert code == 0 and "Every operator that was compared computes what eager does" in printed
    page = (folder / "values.html").read_text("utf-8")
    assert page.count("<svg") == 3 and "aten.linear.default" in page


def test_a_fault_elsewhere_is_named_and_replayed(folder: Path) -> None:
    trace = recorded(folder)
    replay = folder / "replay.py"
    code, printed = run(folder, "--device-trace", str(trace), "--replay", str(replay))
    printed = " ".join(printed.split())
    assert code == 1 and "The first value that departs is" in printed
    assert "in the module second" in printed and "m.py:13 in forward" in printed
    done = subprocess.run([sys.executable, str(replay)], capture_output=True, text=True, check=True)
    difference = float(done.stdout.split()[2])
    assert difference < 1e-6  # this runtime has no fault


def test_traces_that_do_not_fit(folder: Path) -> None:
    code, printed = run(folder, "--device-trace", str(folder / "none.etdp"))
    assert code != 0 and "none.etdp' cannot be read: No such file" in " ".join(printed.split())
    trace = recorded(folder)
    trace.with_name(f"{trace.name}.values").rename(folder / "other.values")
    code, printed = run(folder, "--device-trace", str(trace))
    printed = " ".join(printed.split())
    assert code != 0 and "device.etdp.values' cannot be read" in printed
    assert "record the trace with --etdump-values all" in printed
    trace = recorded(folder, "outputs")
    with pytest.raises(RunError, match="has no run with the values of operators"):
        debug_with(trace)
    with pytest.raises(RunError, match="of another program: instruction 0"):
        debug_with(recorded(folder, size=7))


def debug_with(trace: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1)).eval()
    values = trace.with_name(f"{trace.name}.values").read_bytes()
    x = torch.from_numpy(np.ones((2, 4), np.float32))
    debug(model, (x,), backend="portable", trace=(trace.read_bytes(), values))
