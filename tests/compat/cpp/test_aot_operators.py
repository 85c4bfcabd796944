"""Operators of a project by ExecuTorch's CMake functions: for the runtime, and for PyTorch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from shared_files import SharedFiles

ROOT = Path(__file__).resolve().parents[3]
PROJECT = Path(__file__).resolve().parent / "custom_ops"
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")


def _run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _check(*command: object, **environment: str) -> str:
    done = _run(*command, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _configure(
    build: Path, prefix: Path, *options: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    return _run(
        *(CMAKE, "-S", PROJECT, "-B", build, "-DCMAKE_BUILD_TYPE=Release"),
        f"-DEXECUTORCH_ROOT={ROOT / 'compat' / 'executorch'}",
        *(f"-Drushlight_DIR={prefix}/lib/cmake/rushlight", f"-DPYTHON_EXECUTABLE={python}"),
        *options,
    )


def test_a_python_that_cannot_write_the_code_is_named(tmp_path: Path, prefix: Path) -> None:
    done = _configure(tmp_path, prefix, python=shutil.which("false") or "/bin/false")
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "does not import rushlight and PyTorch" in said and "-D PYTHON_EXECUTABLE" in said


@pytest.fixture(scope="session")
def custom_ops(shared_files: SharedFiles, prefix: Path) -> Path:
    """The folder of the built project, and the program model.pte that calls its operator."""

    def fill(build: Path) -> None:
        done = _configure(build, prefix)
        assert done.returncode == 0, done.stderr
        assert "RegisterCodegenUnboxedKernelsEverything.cpp" in done.stdout
        _check(CMAKE, "--build", build, "--target", "custom_ops_aot_lib", "--parallel", "2")
        # Uses the operator in PyTorch, too.
        library = build / "libcustom_ops_aot_lib.so"
        alias = str(ROOT / "compat" / "python")
        _check(
            sys.executable, PROJECT / "export.py", library, build / "model.pte", PYTHONPATH=alias
        )
        assert _configure(build, prefix, f"-DMODEL={build / 'model.pte'}").returncode == 0
        for target in (
            "custom_ops_executor_runner",
            "custom_ops_shared",
            "narrow_runner",
            "merged",
        ):
            _check(CMAKE, "--build", build, "--target", target, "--parallel", "2")

    return shared_files.folder("compat_custom_ops", fill)


@pytest.mark.full
@pytest.mark.parametrize("runner", ["custom_ops_executor_runner", "narrow_runner"])
def test_the_runtime_calls_kernels_that_yaml_names(custom_ops: Path, runner: str) -> None:
    printed = _check(custom_ops / runner, "--model_path", custom_ops / "model.pte")
    assert printed.strip() == "OutputX 0: tensor(sizes=[2, 3], [5., 5., 5., 5., 5., 5.])"


@pytest.mark.full
def test_python_calls_kernels_that_yaml_names(custom_ops: Path) -> None:
    library, program = custom_ops / "libcustom_ops_shared.so", custom_ops / "model.pte"
    for kernels, before in (([str(library)], ""), ([], f"ctypes.CDLL({str(library)!r})")):
        script = (
            f"import ctypes; {before}\n"
            "import numpy as np, rushlight as rl\n"
            f"module = rl.load({str(program)!r}, kernels={kernels})\n"
            "print(module(np.arange(6, dtype='f4').reshape(2, 3)).tolist())"
        )
        assert _check(sys.executable, "-c", script) == "[[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]\n"


@pytest.mark.full
def test_only_the_programs_operators_and_dtypes_are_selected(custom_ops: Path) -> None:
    selected = yaml.safe_load((custom_ops / "narrow_lib" / "selected_operators.yaml").read_text())
    assert set(selected["operators"]) == {"aten::add.out", "compat_yaml::scaled.out"}
    variants = (custom_ops / "narrow_lib" / "selected_op_variants.h").read_text()
    assert "ScalarType::Float" in variants and "ScalarType::Int" not in variants


@pytest.mark.full
def test_entries_of_the_fallback_fill_in(custom_ops: Path) -> None:
    merged = yaml.safe_load((custom_ops / "merged" / "merged.yaml").read_text())
    names = {entry["op"]: entry["kernels"][0]["kernel_name"] for entry in merged}
    assert names == {"mul.out": "fast::mul_out", "add.out": "own::add_out"}
