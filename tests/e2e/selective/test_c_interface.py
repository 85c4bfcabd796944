"""A selective build with the C interface: a program in C runs, and what it lacks is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
PROJECT = """
cmake_minimum_required(VERSION 3.18...3.31)
project(consumer LANGUAGES C CXX)
find_package(tiny REQUIRED)
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE tiny::tiny)
target_link_options(consumer PRIVATE -Wl,--gc-sections)
"""
MAIN = """
#include <rushlight.h>
#include <stdio.h>

int main(int argc, char** argv) {
  rl_error error = RL_ERROR_INIT;
  rl_module* module = NULL;
  const float data[] = {1, 2, 3, 4, 5, 6};
  const int32_t sizes[] = {2, 3};
  const rl_value_v1 x = rl_tensor(data, RL_FLOAT32, sizes, 2);
  const rl_value_v1 inputs[] = {x, x};
  rl_value_v1 y = RL_VALUE_INIT;
  if (argc != 2 || rl_module_open(argv[1], NULL, &module, &error) != RL_OK ||
      rl_module_run(module, "forward", inputs, 2, &y, 1, &error) != RL_OK) {
    fprintf(stderr, "%s\\n", error.text);
    return 1;
  }
  printf("%s %g %g\\n", rl_version(), ((float*)y.data)[0], ((float*)y.data)[5]);
  return rl_module_close(module, &error);
}
"""


def _run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.full
@pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("cc") is None,
    reason="builds C and C++: needs cmake and a compiler on PATH",
)
def test_a_program_in_c(tmp_path: Path) -> None:
    out, build = tmp_path / "app", tmp_path / "build"
    command = ["build", str(GOLDEN / "add.pte"), "-o", str(out), "--name", "tiny", "--c"]
    result = CliRunner().invoke(app, [*command, "--isa", "plain", "-j", "2"])
    assert result.exit_code == 0, result.output
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "main.c").write_text(MAIN)
    _run("cmake", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={out}")
    _run("cmake", "--build", build)
    told = _run(build / "consumer", GOLDEN / "add.pte")
    assert told.split() == [rl.__version__, "2", "12"]
    rl.export(torch.nn.Bilinear(3, 3, 2), (torch.ones(2, 3), torch.ones(2, 3))).save(
        tmp_path / "other.pte", quiet=True
    )
    refused = subprocess.run(
        [build / "consumer", tmp_path / "other.pte"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1 and "no kernel for aten::" in refused.stderr


def test_it_needs_the_facade() -> None:
    command = ["build", str(GOLDEN / "add.pte"), "-o", "app", "--c", "--no-module"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0
    assert "the C interface needs the class Module" in result.output + result.stderr
