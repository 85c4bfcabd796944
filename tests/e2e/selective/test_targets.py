"""`rushlight build --target`: libraries for other processors, by name and by a toolchain file."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rushlight.cli import app
from rushlight.selective.sources import source_root

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
TOOLCHAINS = source_root() / "cmake" / "toolchains"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="builds C++: needs cmake on PATH"),
]


def _needs(compiler: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        shutil.which(compiler) is None, reason=f"builds for a target: needs {compiler} on PATH"
    )


def _build(target: str, out: Path, *options: str) -> str:
    command = ["build", str(GOLDEN / "add.pte"), "-o", str(out), "--name", "tiny", "-j", "2"]
    result = CliRunner().invoke(app, [*command, "--no-module", "--target", target, *options])
    assert result.exit_code == 0, result.output
    header = subprocess.run(
        ["readelf", "-h", str(out / "lib" / "libtiny.a")],
        capture_output=True,
        text=True,
        check=True,
    )
    machines = {
        line.split(":")[1].strip() for line in header.stdout.splitlines() if "Machine" in line
    }
    (machine,) = machines
    return machine


@_needs("arm-none-eabi-g++")
def test_full_bare_metal_by_name_if_arm_none_eabi_is_here(tmp_path: Path) -> None:
    assert _build("cortex-m55", tmp_path / "app", "--lean") == "ARM"
    sizes = json.loads((tmp_path / "app" / "size.json").read_text())
    named = {row["name"]: row["bytes"] for row in sizes["rows"]}
    assert named["aten::add.out"] > 0
    # The core alone takes 30 KB at most (benchmarks/core_size.py).
    assert sum(named.values()) < 50 * 1024, named


@_needs("arm-none-eabi-g++")
def test_full_a_toolchain_file_if_arm_none_eabi_is_here(tmp_path: Path) -> None:
    own = tmp_path / "own.cmake"
    own.write_text((TOOLCHAINS / "cortex-m55.cmake").read_text().replace("m55", "m33"))
    assert _build(str(own), tmp_path / "app") == "ARM"


@_needs("aarch64-linux-gnu-g++")
def test_full_aarch64_if_its_compiler_is_here(tmp_path: Path) -> None:
    assert _build("aarch64-linux", tmp_path / "app", "--isa", "neon") == "AArch64"


@_needs("riscv64-linux-gnu-g++")
def test_full_riscv64_if_its_compiler_is_here(tmp_path: Path) -> None:
    assert _build("riscv64-linux", tmp_path / "app") == "RISC-V"


@pytest.mark.skipif(
    shutil.which("riscv64-linux-gnu-g++") is not None, reason="the compiler is here"
)
def test_a_target_without_its_compiler_says_what_to_install(tmp_path: Path) -> None:
    command = ["build", str(GOLDEN / "add.pte"), "-o", str(tmp_path), "--target", "riscv64-linux"]
    result = CliRunner().invoke(app, [*command, "--name", "tiny"])
    assert result.exit_code != 0
    said = " ".join((result.output + result.stderr).split())
    assert "such as riscv64-linux-gnu-g++: install one" in said and "its cross compiler" in said
