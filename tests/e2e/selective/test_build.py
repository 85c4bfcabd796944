"""`rushlight build`: the library runs its programs as the full build does, and refuses others by
the names of what they lack."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app

ROOT = Path(__file__).resolve().parents[3]
PYTHON = f"-DPython3_EXECUTABLE={sys.executable}"
CONSUMER = """
cmake_minimum_required(VERSION 3.18...3.31)
project(consumer LANGUAGES CXX)
{find}
add_executable(consumer "{main}")
target_link_libraries(consumer PRIVATE {target})
"""
EMBEDDED = """
#include <cstdio>

#include "{name}.h"

int main() {{
  const rushlight::Span<const uint8_t> image = {name}::{stem}();
  return std::fwrite(image.data(), 1, image.size(), stdout) == image.size() ? 0 : 1;
}}
"""
X = np.linspace(-1, 1, 16, dtype=np.float32)

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        shutil.which("cmake") is None or shutil.which("c++") is None,
        reason="builds C++: needs cmake and a compiler on PATH",
    ),
]


def _mlp() -> torch.nn.Module:
    torch.manual_seed(0)
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    return torch.nn.Sequential(linear(16, 32), relu(), linear(32, 8), relu(), linear(8, 4)).eval()


def _export(model: torch.nn.Module, path: Path, backend: str, dtype: str = "float32") -> Path:
    x = torch.from_numpy(X).to(getattr(torch, dtype))[None]
    rl.export(model.to(x.dtype), (x,), backend=backend).save(path)
    return path


def _run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def _build(out: Path, *programs: Path, **options: str) -> None:
    words = [word for key, value in options.items() for word in (f"--{key}", value) if word]
    result = CliRunner().invoke(app, ["build", *map(str, programs), "-o", str(out), *words])
    assert result.exit_code == 0, result.output
    assert "links" in result.output


def _consumer(folder: Path, main: Path, find: str, target: str, prefix: Path | None) -> Path:
    folder.mkdir()
    text = CONSUMER.format(find=find, main=main.as_posix(), target=target)
    (folder / "CMakeLists.txt").write_text(text)
    where = [PYTHON, *([f"-DCMAKE_PREFIX_PATH={prefix}"] if prefix else [])]
    _run("cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release", *where)
    _run("cmake", "--build", folder / "build", "--parallel", "2")
    return folder / "build" / "consumer"


def _refusal(consumer: Path, program: Path) -> str:
    command = [str(consumer), str(program), *map(str, X)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    return done.stderr


def _check_outputs(consumer: Path, program: Path) -> None:
    numbers = [float(word) for word in _run(consumer, program, *X).split()]
    np.testing.assert_allclose(numbers, rl.load(program)(X[None])[0], rtol=1e-4, atol=1e-5)


def test_a_portable_program_runs_and_others_are_refused(tmp_path: Path) -> None:
    program = _export(_mlp(), tmp_path / "mlp.pte", "portable")
    out = tmp_path / "app"
    _build(out, program, name="tiny", isa="plain", embed="")
    main = ROOT / "examples" / "cpp_consumer" / "main.cpp"
    consumer = _consumer(
        tmp_path / "consumer", main, "find_package(tiny REQUIRED)", "tiny::tiny", out
    )
    _check_outputs(consumer, program)
    softmax = _export(torch.nn.Softmax(-1), tmp_path / "softmax.pte", "portable")
    assert "no kernel for aten::_softmax.out (instruction 0)" in _refusal(consumer, softmax)
    double = _export(torch.nn.ReLU(), tmp_path / "double.pte", "portable", "float64")
    refusal = _refusal(consumer, double)
    assert "no kernel for aten::relu.out of float64[0,1], float64[0,1]" in refusal
    turned = torch.ones(1, 2, 4, 2).to(memory_format=torch.channels_last)
    rl.export(torch.nn.ReLU(), (turned,)).save(tmp_path / "turned.pte")
    refusal = _refusal(consumer, tmp_path / "turned.pte")
    assert "no kernel for aten::relu.out of float32[0,2,3,1], float32[0,2,3,1]" in refusal
    delegated = _export(_mlp(), tmp_path / "cpu.pte", "cpu")
    assert "no backend CpuBackend" in _refusal(consumer, delegated)

    sizes = json.loads((out / "size.json").read_text())
    files = {file["name"]: file["bytes"] for file in sizes["files"]}
    folder = "kernels/portable"
    assert {f"{folder}/linalg/matmul.cpp", f"{folder}/loops/linalg/gemm.cpp"} <= set(files)
    assert f"{folder}/reduction/softmax.cpp" not in files
    rows = {row["name"]: row for row in sizes["rows"]}
    assert sum(row["bytes"] for row in sizes["rows"]) == sum(files.values())
    assert rows["aten::linear.out"]["bytes"] >= files[f"{folder}/linalg/matmul.cpp"]
    assert not rows["aten::relu.out"]["shared"] and rows["core"]["shared"]
    (tmp_path / "embedded.cpp").write_text(EMBEDDED.format(name="tiny", stem="mlp"))
    embedded = _consumer(
        tmp_path / "second", tmp_path / "embedded.cpp", "find_package(tiny)", "tiny::tiny", out
    )
    written = subprocess.run([str(embedded)], capture_output=True, check=True).stdout
    assert written == program.read_bytes()


def _on_cpu(path: Path, activation: torch.nn.Module, quantize: str | None = None) -> Path:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), activation, torch.nn.Linear(64, 16)).eval()
    x = torch.from_numpy(X)[None]
    rl.export(model, (x,), backend="cpu", quantize=quantize, verify=False).save(path)
    return path


def test_a_program_on_cpu_runs_and_other_nodes_are_refused_by_name(tmp_path: Path) -> None:
    program = _on_cpu(tmp_path / "mlp.pte", torch.nn.Sigmoid(), "int8-dynamic")
    main = ROOT / "examples" / "cpp_consumer" / "main.cpp"
    find = f'include("{ROOT}/cmake/RushlightSelect.cmake")\n'
    find += f'rushlight_add_library(tiny PROGRAMS "{program}" ISA plain)'
    consumer = _consumer(tmp_path / "consumer", main, find, "tiny", None)
    _check_outputs(consumer, program)
    other = torch.nn.Sequential(torch.nn.LayerNorm(16), torch.nn.Softmax(-1)).eval()
    refusal = _refusal(consumer, _export(other, tmp_path / "other.pte", "cpu"))
    assert "this build was made without the engine's Norm, Softmax" in refusal
    nibbles = _on_cpu(tmp_path / "nibbles.pte", torch.nn.Tanh(), "int4-dynamic")
    refusal = _refusal(consumer, nibbles)
    assert "without the engine's" in refusal and "TANH of tile programs" in refusal
    assert "DynamicProduct with weights of 4 bits" in refusal


def test_cmake_says_which_package_or_program_it_lacks(tmp_path: Path) -> None:
    text = "cmake_minimum_required(VERSION 3.18)\nproject(p LANGUAGES CXX)\n"
    text += f'include("{ROOT}/cmake/RushlightSelect.cmake")\n'
    text += "rushlight_add_library(tiny PROGRAMS m.pte)"
    (tmp_path / "CMakeLists.txt").write_text(text)

    def configure(*options: object) -> str:
        command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", *options]
        done = subprocess.run(
            [str(c) for c in command], capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        return " ".join(done.stderr.split())

    assert "m.pte" in configure(PYTHON)
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    assert "pip install rushlight" in configure(f"-DPython3_EXECUTABLE={bare}")
