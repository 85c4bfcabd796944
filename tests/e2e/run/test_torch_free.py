"""The torch-free half can be imported and used where torch cannot be.

Loading and running there is tested in tests/python/runtime/test_runtime_import.py, the
command line's run side in test_cli.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[2] / "golden"

BLOCK_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchao", "transformers"):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, NoTorch())
"""


def _run_without_torch(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCK_TORCH + code],
        cwd=GOLDEN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["errors", "schema", "serialize", "runtime", "inspect", "cli"])
def test_import(name: str) -> None:
    _run_without_torch(
        f"import rushlight.{name}\nassert not any(m.split('.')[0] == 'torch' for m in sys.modules)"
    )


def test_read_and_write_a_program() -> None:
    code = """
from rushlight.serialize.pte import read_pte, write_pte
file = read_pte(open("linear.pte", "rb").read())
assert file.program.execution_plan[0].name == "forward"
assert read_pte(bytes(write_pte(file))).program == file.program
"""
    _run_without_torch(code)


def test_exporting_says_what_to_install() -> None:
    code = """
import rushlight
try:
    rushlight.export
except ImportError as error:
    print(error)
"""
    assert "pip install 'rushlight[export]'" in _run_without_torch(code)


def test_operators_are_listed() -> None:
    code = """
from typer.testing import CliRunner
from rushlight.cli import app
print(CliRunner().invoke(app, ["ops", "aten::add.out"]).stdout)
"""
    assert "aten::add.out" in _run_without_torch(code)


def test_state_is_read_written_and_rolled_back() -> None:
    code = """
import numpy as np
import rushlight
module = rushlight.load("counter.pte")
(name,) = module.state
before, kept = module.state[name], module.state.snapshot()
module(np.ones(2, np.float32))
assert (module.state[name] != before).any()
fork = module.fork()
module.state.restore(kept)
assert (module.state[name] == before).all() and (fork.state[name] != before).any()
module.state[name] = before + 1
module.state.reset()
assert (module.state[name] == before).all()
"""
    _run_without_torch(code)
