"""ExecuTorch's CMake names: the installed package's components, and the targets of a checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.inspect import Inspector
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


@pytest.fixture(scope="session")
def package(shared_files: SharedFiles, prefix: Path) -> Path:
    """The folder of a build of the project that finds the package, with executor_runner."""

    def fill(build: Path) -> None:
        assert configure(build, prefix, ";".join(COMPONENTS)).returncode == 0
        done = run(CMAKE, "--build", build, "--parallel", "2", "--target", "package")
        assert done.returncode == 0, done.stdout + done.stderr
        done = run(CMAKE, "--build", build, "--target", "executor_runner")
        assert done.returncode == 0, done.stdout + done.stderr

    return shared_files.folder("compat_package", fill)


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Softmax(-1)).eval()


@pytest.fixture(scope="module")
def program(model: torch.nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program for 2 to 8 rows."""
    file = tmp_path_factory.mktemp("program") / "model.pte"
    rows = ({0: torch.export.Dim("rows", max=8)},)
    rl.export(model, (torch.zeros(2, 6),), backend="xnnpack", dynamic_shapes=rows).save(
        file, quiet=True
    )
    return file


@pytest.mark.full
def test_a_project_that_finds_the_package_runs(
    package: Path, model: torch.nn.Module, program: Path
) -> None:
    x = torch.arange(12.0).reshape(2, 6)
    for way in ("module", "low"):
        done = run(package / "package", way, program, 2, 6)
        got = [float(word) for word in done.stdout.split()]
        assert got == pytest.approx(model(x).flatten().tolist(), rel=1e-4)


def runner(
    package: Path, folder: Path, *flags: str, given: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [str(package / "executorch-build" / "executor_runner"), *flags]
    return subprocess.run(
        command, cwd=folder, input=given, capture_output=True, text=True, check=False
    )


@pytest.mark.full
def test_the_runner_prints_and_writes_outputs(
    package: Path, model: torch.nn.Module, program: Path, tmp_path: Path
) -> None:
    flags = (f"--model_path={program}", "--output_file", "out")
    done = runner(package, tmp_path, *flags, "--num_executions=3", "-print_output=all")
    assert done.returncode == 0, done.stderr
    expected = model(torch.ones(8, 6)).detach().numpy()
    written = np.fromfile(tmp_path / "out-0.bin", np.float32).reshape(8, 4)
    assert np.allclose(written, expected, atol=1e-6)
    printed = re.findall(r"^Output\[0\]\[\d+\]: \(float\) (\S+)$", done.stdout, re.MULTILINE)
    assert [float(one) for one in printed] == pytest.approx(expected.flatten().tolist(), abs=1e-6)
    assert "Iteration 3 of 3" in done.stderr

    x = np.arange(18, dtype=np.float32).reshape(3, 6) / 9
    np.concatenate([x, np.zeros((5, 6), np.float32)]).tofile(tmp_path / "x.bin")
    few = (*flags, "--inputs=x.bin", "--input_shapes=3x6", "--etdump_path=t.etdp")
    done = runner(package, tmp_path, *few, "--cpu_threads=1")
    expected = model(torch.from_numpy(x)).detach().numpy()
    assert done.stdout.startswith("OutputX 0: tensor(sizes=[3, 4], [")
    assert np.allclose(
        np.fromfile(tmp_path / "out-0.bin", np.float32).reshape(3, 4), expected, atol=1e-6
    )
    events = Inspector(etdump_path=tmp_path / "t.etdp").event_blocks[-1].events
    assert any(event.name == "Method::execute" for event in events)

    done = runner(package, tmp_path, *few, "--server_mode", given="\n\n")
    assert done.returncode == 0 and done.stderr.count("SERVER MODE DONE") == 2


@pytest.mark.full
def test_the_runner_verifies_bundled_programs(
    package: Path, model: torch.nn.Module, tmp_path: Path
) -> None:
    x = torch.linspace(-1, 1, 12).reshape(2, 6)
    program = rl.export(model, (x,))
    for name, offset in (("good", 0.0), ("bad", 0.5)):
        bundle = rl.bundle(program, [rl.TestCase((x,), expected=(model(x).detach() + offset,))])
        bundle.save(tmp_path / f"{name}.bpte")
    done = runner(package, tmp_path, "--model_path=good.bpte")
    assert done.returncode == 0, done.stderr
    assert "TEST: BundleIO index[0] Test_result: PASS" in done.stderr
    assert done.stdout.startswith("OutputX 0: tensor(sizes=[2, 4], [")
    done = runner(package, tmp_path, "--model_path=bad.bpte")
    assert done.returncode == 1
    assert "Test_result: FAIL" in done.stderr and "greatest 0.5" in done.stderr
    done = runner(package, tmp_path, "--model_path=bad.bpte", "--bundleio_atol=0.6")
    assert done.returncode == 0
    done = runner(package, tmp_path, "--model_path=good.bpte", "--inputs=x.bin")
    assert done.returncode == 1 and "has its own inputs" in done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model_path=none.pte"], "no such file"),
        (["--num_execution=2"], "there is no flag --num_execution"),
        (["--num_executions=two"], "--num_executions is 'two', and must be a whole number"),
        (["--inputs=short.bin"], "input 0: got 4 bytes, expected 192"),
        (["--inputs=none.bin"], "the input none.bin cannot be read"),
        (["--inputs=short.bin,short.bin"], "2 inputs are given, but the method has 1"),
        (["--input_shapes=9x6"], "input 0 cannot have the sizes 9x6"),
        (["--input_shapes=1x6,2"], "--input_shapes has 2 sizes, but the method has 1 inputs"),
        (["--method_name=backward"], "backward"),
        (["--print_output=some"], "must be none, summary or all"),
        (["--server_mode"], "needs --output_file"),
        (["--output_file=no/folder"], "cannot be written to no/folder-0.bin"),
    ],
)
def test_the_runner_says_what_is_wrong(
    package: Path, program: Path, tmp_path: Path, flags: list[str], message: str
) -> None:
    (tmp_path / "short.bin").write_bytes(b"abcd")
    done = runner(package, tmp_path, f"--model_path={program}", *flags)
    assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.full
def test_what_has_no_counterpart_does_not_compile_and_says_why(
    tmp_path: Path, prefix: Path
) -> None:
    assert configure(tmp_path, prefix, "runtime").returncode == 0
    done = run(CMAKE, "--build", tmp_path, "--target", "refused")
    assert done.returncode != 0
    assert "coremldelegate: programs for Core ML run by Rushlight's" in done.stdout + done.stderr
