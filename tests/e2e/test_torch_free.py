"""The runtime half works where torch cannot be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import rushlight as rl

BLOCK_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchao", "transformers"):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, NoTorch())
"""


def _run_without_torch(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCK_TORCH + code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["errors", "schema", "serialize", "runtime", "inspect", "cli"])
def test_import(name: str, tmp_path: Path) -> None:
    code = f"import rushlight.{name}; assert not any(m.startswith('torch') for m in sys.modules)"
    _run_without_torch(code, tmp_path)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of two inputs and a dictionary of outputs, its inputs and eager's results."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"sum": x + y, "product": x @ y.T}

    folder = tmp_path_factory.mktemp("torch_free")
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    rl.export(Model(), (x, y)).save(folder / "model.pte", quiet=True)
    expected = {name: value.numpy() for name, value in Model()(x, y).items()}
    np.savez(folder / "data.npz", x=x.numpy(), y=y.numpy(), **expected)
    return folder / "model.pte"


def test_load_and_run(model_file: Path) -> None:
    code = """
import numpy as np, rushlight as rl
data = np.load("data.npz")
out = rl.load("model.pte")(data["x"], y=data["y"])
assert sorted(out) == ["product", "sum"], out
for name in out:
    np.testing.assert_allclose(out[name], data[name], rtol=1e-5, atol=1e-6)
try:
    rl.load("model.pte")(data["x"][:2], data["y"])
except rl.RunError as error:
    print(error)
"""
    assert "x" in _run_without_torch(code, model_file.parent)


def test_read_and_write_the_file(model_file: Path) -> None:
    code = """
from rushlight.serialize.pte import read_pte, write_pte
data = open("model.pte", "rb").read()
file = read_pte(data)
assert file.program.execution_plan[0].name == "forward"
assert read_pte(bytes(write_pte(file))).program == file.program
"""
    _run_without_torch(code, model_file.parent)


@pytest.mark.parametrize(
    "command", ["inspect model.pte", "run model.pte --random", "bench model.pte"]
)
def test_command_line(command: str, model_file: Path) -> None:
    code = f"sys.argv = ['rushlight', *{command.split()!r}]\nfrom rushlight.cli import app\napp()"
    assert _run_without_torch(code, model_file.parent)


def test_exporting_says_what_to_install(tmp_path: Path) -> None:
    code = """
import rushlight as rl
try:
    rl.export(None)
except ImportError as error:
    print(error)
"""
    assert "rushlight[export]" in _run_without_torch(code, tmp_path)
