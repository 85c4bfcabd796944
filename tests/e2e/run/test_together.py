"""Rushlight beside ExecuTorch and the packages of other backends, all in one process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BY_ID = """
import sys
import torch
import rushlight
from rushlight.partition import to_backend

class Add(torch.nn.Module):
    def forward(self, x):
        return x + x

edge = rushlight.to_edge(torch.export.export(Add(), (torch.ones(2),)))
to_backend("BackendWithCompilerDemo", edge.exported_program(), [])
rushlight.export(Add(), (torch.ones(2),), backend="xnnpack")
found = {"coremltools", "executorch", "openvino", "torchao"} & set(sys.modules)
assert not found, found
rushlight.export(Add(), (torch.ones(2),), backend="openvino")
assert "openvino" in sys.modules and "coremltools" not in sys.modules
rushlight.export(Add(), (torch.ones(2),), backend="coreml", verify=False)
assert "coremltools" in sys.modules
to_backend("CoreMLBackend", edge.exported_program(), [])
"""


@pytest.fixture(scope="session")
def together_python() -> Path:
    """A Python that has them all; its environment is made if it is missing."""
    python = ROOT / ".venv-together" / "bin" / "python"
    if not python.exists():
        from filelock import FileLock

        with FileLock(str(ROOT / ".venv-together.lock")):
            subprocess.run(["make", "together"], cwd=ROOT, check=True)
    return python


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


@pytest.mark.parametrize("first", ["rushlight", pytest.param("executorch", marks=pytest.mark.full)])
def test_both_export_and_run_in_one_process(first: str, together_python: Path) -> None:
    out = _run(together_python, ROOT / "tests" / "peer" / "together.py", first)
    assert "both work" in out


def test_a_backend_imports_its_own_packages_alone(together_python: Path) -> None:
    _run(together_python, "-c", BY_ID)
