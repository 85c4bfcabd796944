"""The Rust binding: its own tests pass, and programs give the bits that they give in Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import binding_data
import numpy as np
import pytest
from codegen.c_header import ROOT

import rushlight as rl
from rushlight.inspect import Inspector
from rushlight.inspect.explain import explain

RUST = ROOT / "bindings" / "rust"
TARGET = ROOT / "build" / "rust"  # kept, so that a second run compiles what has changed
CARGO = shutil.which("cargo", path=f"{os.environ['PATH']}:{Path.home()}/.cargo/bin")
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(CARGO is None, reason="there is no cargo: install Rust 1.77 or later"),
]


def _cargo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs cargo; `environment` replaces variables, "" removes them."""
    assert CARGO
    variables = {
        **os.environ,
        "PATH": f"{Path(CARGO).parent}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(TARGET),
        "RUSHLIGHT_LIB_DIR": str(binding_data.LIBRARY.parent),
        "LD_LIBRARY_PATH": str(binding_data.LIBRARY.parent),
        **environment,
    }
    variables = {name: value for name, value in variables.items() if value}
    return subprocess.run(
        [CARGO, *arguments, "--offline"],
        cwd=RUST, env=variables, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip


def test_rust_if_cargo_is_installed(tmp_path: Path) -> None:
    binding_data.make(tmp_path)
    kernels = TARGET / "debug" / "examples" / "libtwice.so"
    run = _cargo(
        "test",
        "--no-fail-fast",
        RUSHLIGHT_TEST_DATA=str(tmp_path),
        RUSHLIGHT_TEST_KERNELS=str(binding_data.TWICE),
        RUSHLIGHT_TEST_RUST_KERNELS=str(kernels),
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-6000:]
    assert run.stdout.count("test result: ok") >= 6
    # What Rust has written, Python reads.
    events = [
        e for block in Inspector(tmp_path / "counter_rust.etdp").event_blocks for e in block.events
    ]
    assert any("add" in str(event.name) for event in events)
    report = explain(tmp_path / "counter_rust.rlfr", tmp_path / "counter.pte")
    assert "0 inputs" in str(report)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    module = rl.load(tmp_path / "twice.pte", kernels=[kernels])
    np.testing.assert_array_equal(module(x), x * 2)


def test_rust_examples_if_cargo_is_installed() -> None:
    add = str(binding_data.GOLDEN / "add.pte")
    assert _cargo("build", "--examples").returncode == 0
    libraries = {"LD_LIBRARY_PATH": str(binding_data.LIBRARY.parent)}
    for name, arguments, told in (
        ("run", [add], "output 0 is Tensor(float32[2, 3])"),
        ("chat", [str(binding_data.GOLDEN / "llm" / "v1.pte"), "hi"], " tokens"),
    ):
        command = [str(TARGET / "debug" / "examples" / name), *arguments]
        done = subprocess.run(command, env=libraries, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and told in done.stdout, done.stdout + done.stderr


def test_rust_finds_the_library_if_cargo_is_installed(tmp_path: Path) -> None:
    build = ("build", "-p", "rushlight-sys")
    run = _cargo(*build, RUSHLIGHT_LIB_DIR=str(tmp_path))
    assert run.returncode != 0 and f"{tmp_path}, has no librushlight" in run.stderr
    assert "set RUSHLIGHT_LIB_DIR" in run.stderr
    run = _cargo(*build, RUSHLIGHT_LIB_DIR="", PKG_CONFIG_PATH=str(tmp_path))
    assert run.returncode != 0 and "set RUSHLIGHT_LIB_DIR" in run.stderr
    run = _cargo(*build, RUSHLIGHT_LIB_DIR="", PKG_CONFIG="no-pkg-config")
    assert run.returncode != 0 and "no-pkg-config cannot be run" in run.stderr
    folder = binding_data.LIBRARY.parent
    (tmp_path / "rushlight-c.pc").write_text(
        f"Name: rushlight-c\nDescription: x\nVersion: 0.1.0\nLibs: -L{folder} -lrushlight\n",
        encoding="utf-8",
    )
    run = _cargo(*build, RUSHLIGHT_LIB_DIR="", PKG_CONFIG_PATH=str(tmp_path))
    assert run.returncode == 0, run.stderr


def test_rust_is_clean_if_cargo_is_installed() -> None:
    run = _cargo("clippy", "--all-targets", "--config", "build.rustflags=['-Dwarnings']")
    assert run.returncode == 0, run.stderr[-4000:]
    fmt = subprocess.run(
        [str(CARGO), "fmt", "--check"], cwd=RUST, capture_output=True, text=True, check=False
    )
    assert fmt.returncode == 0, fmt.stdout[-4000:] + fmt.stderr
