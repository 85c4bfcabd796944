"""The Java binding: its own tests pass, and a program gives the bits that it gives in Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import bad_kernels
import numpy as np
import pytest
import torch
from c_library import PATH
from codegen.c_header import HEADERS, ROOT

import rushlight as rl

JAVA = ROOT / "bindings" / "java" / "src"


def _build(folder: Path) -> list[str]:
    """Compiles library, binding and tests; returns the command that runs the tests."""
    javac = shutil.which("javac")
    assert javac, "there is no javac: on Debian, apt install openjdk-17-jdk-headless"
    home = Path(javac).resolve().parents[1]
    sources = [str(p) for p in sorted(JAVA.rglob("*.java"))]
    subprocess.run(
        [javac, "--release", "11", "-Xlint:all", "-Werror", "-d", folder / "classes", *sources],
        check=True,
    )
    includes = [f"-I{p.parent}" for p in HEADERS]
    includes += [f"-I{home}/include", f"-I{home}/include/linux"]
    library = folder / "librushlight_jni.so"
    flags = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run(
        [
            *("cc", *flags, *includes, *sorted((JAVA / "main" / "c").glob("*.c"))),
            *("-o", library, PATH, f"-Wl,-rpath,{PATH.parent}"),
        ],
        check=True,
    )
    return [
        *(str(home / "bin" / "java"), "-Xcheck:jni", f"-Drushlight.library={library}"),
        *("-cp", str(folder / "classes"), "dev.rushlight.RushlightTest"),
    ]


class Net(torch.nn.Module):
    """Two inputs of one size."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 4)
        )

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.layers(x) + y


class Loop(torch.nn.Module):
    """Far more iterations than a test waits for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def body(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, y + 1.0

        start = torch.zeros((), dtype=torch.int64)
        return torch.while_loop(lambda i, y: i < 10_000_000, body, (start, x))[1]


@pytest.mark.full
def test_java(tmp_path: Path) -> None:
    x, y = torch.randn(3, 6), torch.zeros(3, 1)
    path = tmp_path / "net.pte"
    rows = torch.export.Dim("rows", min=2, max=8)
    shapes = {"x": {0: rows}, "y": {0: rows}}
    rl.export(Net().eval(), (x, y), backend="cpu", dynamic_shapes=shapes).save(path)
    rl.export(Loop(), (torch.zeros(2),), verify=False).save(tmp_path / "slow.pte")
    x.numpy().tofile(tmp_path / "x.bin")
    np.asarray(rl.load(path)(x.numpy(), y.numpy())).tofile(tmp_path / "y.bin")
    bad_kernels.make(tmp_path, ROOT / "build" / "dev" / "tests" / "cpp" / "libplugin_twice.so")
    command = [*_build(tmp_path), str(ROOT / "tests" / "golden"), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-5000:]
    assert "checks passed" in run.stdout
    # Reports of -Xcheck:jni about the binding's own calls.
    assert "WARNING in native method" not in run.stdout, run.stdout[-3000:]
    assert "FATAL ERROR" not in run.stdout + run.stderr
