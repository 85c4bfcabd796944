"""The core stays within its budgets of bytes, and works without what a build may leave out."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import core_size  # noqa: E402

on_x86_64 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or not core_size.X86_64.is_here,
    reason="no g++ for x86-64 here",
)
with_arm_compiler = pytest.mark.skipif(
    not core_size.CORTEX_M55.is_here, reason="arm-none-eabi-g++ is not installed"
)
# Those that link the core and the facade alone.
CORE_TESTS = (
    "test_core test_kernel_table test_plugin_kernel test_flatbuffer test_program test_method "
    "test_method_io test_left_out test_unbounded test_delegate test_external_data"
).split()


def check(
    target: core_size.Target, form: core_size.Form, capsys: pytest.CaptureFixture[str]
) -> None:
    size = core_size.measure(target, form)
    assert core_size.report(target, form, size), capsys.readouterr().out
    # The map of the linker has everything but the tables of a shared object.
    assert 0.8 * size.code < sum(size.objects.values()) <= size.code
    assert size.objects["method_method_run.o"] > 1000
    assert size.objects["method_delegate_loader.o"] == 0, "linked though nothing names backends"
    assert size.objects["kernel_schema.o"] == 0, "linked though no kernel is foreign"
    assert size.backends > 1000
    without_reports = form is core_size.LEAST
    assert (size.objects["trace_failure_report.o"] == 0) == without_reports


@on_x86_64
def test_least_form_on_x86_64(capsys: pytest.CaptureFixture[str]) -> None:
    check(core_size.X86_64, core_size.LEAST, capsys)


@pytest.mark.full
@on_x86_64
def test_all_parts_on_x86_64(capsys: pytest.CaptureFixture[str]) -> None:
    check(core_size.X86_64, core_size.ALL_PARTS, capsys)


@pytest.mark.full
@with_arm_compiler
@pytest.mark.parametrize("form", core_size.CORTEX_M55.budgets, ids=lambda form: form.name)
def test_cortex_m55_if_its_compiler_is_here(
    form: core_size.Form, capsys: pytest.CaptureFixture[str]
) -> None:
    check(core_size.CORTEX_M55, form, capsys)


def test_a_form_beyond_its_budget_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    budget = core_size.X86_64.budgets[core_size.LEAST]
    size = core_size.Size(budget + 1, 0, 0, core_size.Counter())
    assert not core_size.report(core_size.X86_64, core_size.LEAST, size)
    assert f"MORE THAN the budget of {budget} bytes" in capsys.readouterr().out


@pytest.mark.full
def test_the_core_works_without_tracing_and_failure_reports(tmp_path: Path) -> None:
    cmake = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
    ninja = shutil.which("ninja")
    options = [f"RUSHLIGHT_BUILD_{part}=OFF" for part in ("KERNELS", "RUNNER", "C", "PYTHON")]
    options += ["RUSHLIGHT_TRACING=OFF", "RUSHLIGHT_FAILURE_REPORTS=OFF", "CMAKE_BUILD_TYPE=Debug"]
    definitions = [f"-D{option}" for option in (*options, "RUSHLIGHT_BUILD_TESTS=ON")]
    run(cmake, "-S", ROOT, "-B", tmp_path, *(["-G", "Ninja"] if ninja else []), *definitions)
    run(cmake, "--build", tmp_path, "-j", "2", "--target", *CORE_TESTS)
    for test in CORE_TESTS:
        files = sorted((ROOT / "tests/golden").glob("*.pte")) if test == "test_flatbuffer" else []
        run(tmp_path / "tests" / "cpp" / test, *(["20", *files] if files else []))


def run(*command: object) -> None:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
