"""The modules that importing and using the runtime imports, and the CPU time that it takes."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from runtime_programs import LEAF, binary, contract, program, tensor_value

SIZE = {"min": 1, "max": 4, "sym": "s0"}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A program with a contract, a relation and structured outputs."""
    one = contract(
        [tensor_value(SIZE, name="x"), tensor_value(SIZE, name="y")],
        [tensor_value(SIZE)],
        out_spec={"t": "dict", "k": ["sum"], "c": [LEAF]},
        relations=[{"expr": "s0 % 2 == 0", "text": "size 0 of x is even"}],
    )
    path = tmp_path_factory.mktemp("import") / "add.pte"
    path.write_bytes(program(binary("aten::add.out", 4, dynamic=True), contract={"forward": one}))
    return path


def python(code: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_alone_imports_nothing() -> None:
    code = """
import sys
import rushlight
assert {m for m in sys.modules if m.startswith("rushlight")} == {"rushlight"}, sys.modules
assert "numpy" not in sys.modules
assert "export" in dir(rushlight)
assert rushlight.LoadError.__mro__[1] is rushlight.Error
try:
    rushlight.nothing
except AttributeError as error:
    assert "no attribute 'nothing'" in str(error)
else:
    raise AssertionError
"""
    python(code)


def test_load_and_run_where_torch_is_blocked(file: pathlib.Path) -> None:
    code = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "rich", "typer", "flatbuffers"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, NoTorch())
sys.modules["torch"] = None
import numpy as np
import rushlight as rl

module = rl.load(sys.argv[1])
x = np.ones(2, np.float32)
assert (module(x, y=x)["sum"] == 2).all()
try:
    module(np.ones(3, np.float32), np.ones(3, np.float32))
except rl.RunError as error:
    assert "size 0 of x is even" in str(error)
assert not any(m.split(".")[0] in ("rich", "typer", "flatbuffers") for m in sys.modules)
"""
    python(code, str(file))


def test_a_torch_that_is_imported_later_is_used(file: pathlib.Path) -> None:
    pytest.importorskip("torch")
    code = """
import sys
import numpy as np
import rushlight as rl

module = rl.load(sys.argv[1])
x = np.ones(2, np.float32)
assert isinstance(module(x, x)["sum"], np.ndarray)
assert "torch" not in sys.modules
import torch

assert isinstance(module(torch.ones(2), x)["sum"], torch.Tensor)
assert isinstance(module(x, x)["sum"], np.ndarray)
"""
    python(code, str(file))


def test_a_torch_without_c_exchange(file: pathlib.Path) -> None:
    """Older ones offer DLPack capsules only."""
    pytest.importorskip("torch")
    code = """
import sys
import torch

torch.Tensor.__dlpack_c_exchange_api__ = None
import rushlight as rl

module = rl.load(sys.argv[1])
x = torch.arange(8.0).reshape(4, 2).T[0]
result = module(x, x.clone().requires_grad_())["sum"]
assert torch.equal(result, x + x) and not result.requires_grad
del module
assert torch.equal(result, x + x)
"""
    python(code, str(file))


def test_a_load_imports_little(file: pathlib.Path) -> None:
    """Nothing that takes long to import: `python -X importtime` has the times."""
    code = """
import sys
import numpy
before = set(sys.modules)
import rushlight as rl
rl.load(sys.argv[1])
print(" ".join(sorted(set(sys.modules) - before)))
"""
    modules = python(code, str(file)).split()
    heavy = {
        "torch",
        "rich",
        "typer",
        "email",
        "importlib.metadata",
        "asyncio",
        "sqlite3",
        "pandas",
    }
    assert (
        not heavy & {name.split(".")[0] for name in modules} and "importlib.metadata" not in modules
    )
    assert len(modules) < 150, modules
