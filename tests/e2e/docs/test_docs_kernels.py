"""The C++ kernel of docs/custom-operators.md, as it stands there: it compiles by the command of the
page, and computes what the page's reference does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from doc_pages import blocks_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "custom-operators.md"

RUN = """
import torch

import rushlight as rl


@rl.custom_op("acme::snake(Tensor x, float a) -> Tensor")
def snake(x, a):
    return x + torch.sin(a * x) ** 2 / a


class Model(torch.nn.Module):
    def forward(self, x):
        return snake(x * 2, 1.5) + 1


x = torch.randn(3, 4)
for backend in ("portable", "cpu"):
    program = rl.export(Model(), (x,), backend=backend, kernels=["./libacme.so"])
    module = rl.load(program.buffer, kernels=["./libacme.so"])
    torch.testing.assert_close(module(x), Model()(x))
    print(*(operator.name for operator in program.report().operators))
"""


def test_the_kernel_in_cpp(tmp_path: Path) -> None:
    [source] = blocks_of(PAGE, "cpp")
    [command] = [block for block in blocks_of(PAGE, "") if block.startswith("c++ ")]
    (tmp_path / "snake.cpp").write_text(source, "utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    subprocess.run(["bash", "-ec", command], cwd=tmp_path, env=environment, check=True)
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    portable, cpu = done.stdout.splitlines()
    assert "acme::snake" in portable and cpu == "CpuBackend"
