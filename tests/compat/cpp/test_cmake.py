"""ExecuTorch's CMake names: the installed package's components, and the targets of a checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

import rushlight as rl
from shared_files import SharedFiles

if TYPE_CHECKING:
    from conftest import ExecuTorch

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
TARGETS = (HERE / "targets.txt").read_text().split()
COMPONENTS = [
    *("runtime", "threadpool", "kernels_optimized", "kernels_quantized", "etdump"),
    "backend_xnnpack",
]
# Of wheels for other systems and devices, or of backends that C++ does not have here.
ABSENT = [
    *("backend_coreml", "backend_mlx", "kernels_torchao", "backend_cuda", "extension_cuda"),
    *("backend_openvino", "backend_qnn"),
]


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def prefix(shared_files: SharedFiles) -> Path:
    """A folder with the installed runtime."""
    dev = ROOT / "build" / "dev"
    assert (dev / "CMakeCache.txt").exists(), "run `make ext` first"

    def fill(folder: Path) -> None:
        done = run(CMAKE, "--install", dev, "--prefix", folder)
        assert done.returncode == 0, done.stderr

    return shared_files.folder("compat_prefix", fill)


def configure(
    build: Path, prefix: Path, components: str, package: str = "compat/python/executorch"
) -> subprocess.CompletedProcess[str]:
    return run(
        *(CMAKE, "-S", HERE / "package", "-B", build, "-DCMAKE_BUILD_TYPE=Release"),
        *(f"-DCMAKE_PREFIX_PATH={ROOT / package}", f"-DCOMPONENTS={components}"),
        *(f"-Drushlight_DIR={prefix}/lib/cmake/rushlight", f"-DTARGETS={';'.join(TARGETS)}"),
    )


def test_the_package_has_the_sdks_components_targets_and_variables(
    tmp_path: Path, prefix: Path
) -> None:
    done = configure(tmp_path, prefix, ";".join(COMPONENTS))
    assert done.returncode == 0, done.stderr
    printed = dict(re.findall(r"^-- (\w+)=(.*)$", done.stdout, re.MULTILINE))
    assert printed["EXECUTORCH_FOUND"] == "ON" and printed["executorch_runtime_FOUND"] == "TRUE"
    assert printed["executorch_backend_qnn_FOUND"] == "FALSE"
    assert all(printed[name] for name in printed), printed
    libraries = set(printed["EXECUTORCH_LIBRARIES"].split(";"))
    offered = {f"executorch::{name}" for name in COMPONENTS}
    assert offered - libraries == {"executorch::kernels_quantized"} and libraries < offered
    for folder in printed["EXECUTORCH_INCLUDE_DIRS"].split(";"):
        assert Path(folder).is_dir()


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ("runtime;backend_cuda", "component 'backend_cuda': there is no backend for CUDA"),
        ("backend_openvino", "run by rushlight's Python runtime"),
        ("kernel_optimised", "the components are runtime, threadpool"),
    ],
)
def test_a_component_that_is_not_there_is_named(
    tmp_path: Path, prefix: Path, components: str, message: str
) -> None:
    # By executorch_DIR, and by the folder that older guides name.
    done = configure(tmp_path, prefix, components, "compat/executorch/share/cmake")
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())


@pytest.mark.full
@pytest.mark.interop
def test_the_components_are_those_of_the_wheel(tracing_executorch: ExecuTorch) -> None:
    environment = tracing_executorch.python.parents[1]
    config = "lib/python*/site-packages/executorch/share/cmake/executorch-config.cmake"
    text = next(environment.glob(config)).read_text()
    theirs = re.findall(r"^_executorch_define_component\(\s*(\w+)", text, re.MULTILINE)
    assert sorted([*theirs, "runtime"]) == sorted(COMPONENTS + ABSENT)
    variables = re.findall(r"^# (EXECUTORCH_\w+)  *--", text, re.MULTILINE)
    ours = (ROOT / "compat/executorch/share/cmake/executorch-config.cmake").read_text()
    assert variables and [name for name in variables if name not in ours] == []


@pytest.mark.full
def test_a_project_that_finds_the_package_runs(tmp_path: Path, prefix: Path) -> None:
    build = tmp_path / "build"
    assert configure(build, prefix, ";".join(COMPONENTS)).returncode == 0
    done = run(CMAKE, "--build", build, "--parallel", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Softmax(-1)).eval()
    x = torch.arange(12.0).reshape(2, 6)
    rl.export(model, (x,), backend="xnnpack").save(tmp_path / "model.pte", quiet=True)
    for way in ("module", "low"):
        done = run(build / "package", way, tmp_path / "model.pte", 2, 6)
        got = [float(word) for word in done.stdout.split()]
        assert got == pytest.approx(model(x).flatten().tolist(), rel=1e-4)


@pytest.mark.full
def test_what_has_no_counterpart_does_not_compile_and_says_why(
    tmp_path: Path, prefix: Path
) -> None:
    assert configure(tmp_path, prefix, "runtime").returncode == 0
    done = run(CMAKE, "--build", tmp_path, "--target", "refused")
    assert done.returncode != 0
    assert "coremldelegate: programs for Core ML run by Rushlight's" in done.stdout + done.stderr
