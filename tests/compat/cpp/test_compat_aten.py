"""WRAP_TO_ATEN: kernels that are written for ExecuTorch are operators of PyTorch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from shared_files import SharedFiles

ROOT = Path(__file__).resolve().parents[3]
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
pytestmark = pytest.mark.full

# Run by itself, since operators are of the whole process.
SCRIPT = """
import sys
import torch

torch.ops.load_library(sys.argv[1])
ops = torch.ops.compat_aten
torch.manual_seed(0)
weight, x, bias = torch.randn(3, 4), torch.randn(2, 3), torch.randn(4)
for given in (bias, None):
    expected = x @ weight + (0 if given is None else given)
    torch.testing.assert_close(ops.custom_linear(weight, x, given), expected)
    out = torch.empty(2, 4)
    assert ops.custom_linear.out(weight, x, given, out=out) is out
    torch.testing.assert_close(out, expected)
turned = torch.empty(4, 2).t()  # not row-major, as are these arguments
ops.custom_linear.out(weight.t().contiguous().t(), x.t().contiguous().t(), bias, out=turned)
torch.testing.assert_close(turned, x @ weight + bias)

parts = [torch.randn(6), torch.randn(12)[::2]]
expected = (0.5 * parts[0] - 2.0 * parts[1]) * 3
out = torch.empty(6)
ops.weighted.out(parts, [0.5, -2.0], 3, None, out=out)
torch.testing.assert_close(out, expected)
ops.weighted.out(parts, [0.5, -2.0], 3.0, 4, out=out)  # the kernel makes it smaller
torch.testing.assert_close(out, expected[:4])

values = torch.arange(6.0).reshape(2, 3)
turned = values.t()
ops.add_to(turned, 1.5, True)
torch.testing.assert_close(values, torch.arange(6.0).reshape(2, 3) - 1.5)
assert ops.count_of(torch.zeros(2, 5)) == 10
assert ops.shares_memory(values) and ops.shares_memory(torch.randn(2, 3, 4, 5).contiguous(
    memory_format=torch.channels_last))
try:
    ops.count_of(torch.zeros(2, device="meta"))
except RuntimeError as error:
    assert "kernels compute on the processor" in str(error), error
else:
    raise AssertionError("a tensor without memory was taken")
print("done")
"""

IN_A_PROGRAM = """
import sys
import torch
import rushlight as rl

torch.ops.load_library(sys.argv[1])
torch.library.register_fake(
    "compat_aten::custom_linear",
    lambda weight, input, bias: input.new_empty(input.shape[0], weight.shape[1]),
)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 4))
        self.bias = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        given = torch.ops.compat_aten.custom_linear(self.weight, x, self.bias)
        return given, torch.ops.compat_aten.custom_linear(self.weight, x, None)

model, x = Model().eval(), torch.randn(5, 3)
rows = torch.export.Dim("rows", max=8)
program = rl.export(model, (x,), dynamic_shapes=({0: rows},), backend="cpu")  # verified
for rows in (5, 2, 8):
    x = torch.randn(rows, 3)
    torch.testing.assert_close(rl.load(program.buffer)(x), model(x))
print("done")
"""


@pytest.fixture(scope="session")
def library(shared_files: SharedFiles, prefix: Path) -> Path:
    """A shared library of kernels and their operators."""

    def fill(folder: Path) -> None:
        build = folder / "build"
        source = Path(__file__).resolve().parent / "aten"
        for command in (
            (
                *(CMAKE, "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release"),
                f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}",
                f"-DEXECUTORCH_FOLDER={ROOT / 'compat' / 'executorch'}",
                f"-Drushlight_DIR={prefix}/lib/cmake/rushlight",
            ),
            (CMAKE, "--build", build, "--target", "custom_linear"),
        ):
            done = subprocess.run(
                [str(part) for part in command], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr

    return shared_files.folder("compat_aten", fill) / "build" / "libcustom_linear.so"


@pytest.mark.parametrize("script", [SCRIPT, IN_A_PROGRAM])
def test_kernels_are_operators_of_pytorch(library: Path, script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script, str(library)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stdout + done.stderr
