"""The C# binding: its tests pass in Mono, and programs give the bits that they give in Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import binding_data
import pytest
from codegen.c_abi import abi_version, path_of
from codegen.c_header import ROOT

from rushlight.inspect import Inspector
from rushlight.inspect.explain import explain

CSHARP = ROOT / "bindings" / "csharp"
MCS, MONO = shutil.which("mcs"), shutil.which("mono")
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not (MCS and MONO), reason="there is no Mono: on Debian, apt install mono-mcs mono-runtime"
    ),
]


def _compile(folder: Path) -> Path:
    """Compiles the binding and its tests; returns the program that runs these."""
    flags = [str(MCS), "-langversion:7.2", "-warn:4", "-warnaserror", "-debug"]
    sources = [
        [str(p) for p in sorted((CSHARP / n).glob("*.cs"))]
        for n in ("Rushlight", "Rushlight.Tests")
    ]
    library, tests = folder / "Rushlight.dll", folder / "Tests.exe"
    documentation = f"-doc:{folder / 'Rushlight.xml'}"
    subprocess.run(
        [*flags, "-nowarn:1591", documentation, "-target:library", f"-out:{library}", *sources[0]],
        check=True,
    )
    subprocess.run([*flags, f"-r:{library}", f"-out:{tests}", *sources[1]], check=True)
    return tests


def test_csharp_if_mono_is_installed(tmp_path: Path) -> None:
    tests = _compile(tmp_path)
    binding_data.make(tmp_path / "data")
    run = subprocess.run(
        [
            *(str(MONO), "--debug", str(tests), str(tmp_path / "data"), str(binding_data.GOLDEN)),
            *(str(binding_data.TWICE), str(path_of(abi_version()))),
        ],
        env={**os.environ, "LD_LIBRARY_PATH": str(binding_data.LIBRARY.parent)},
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-3000:]
    assert "checks passed" in run.stdout
    # What C# has written, Python reads.
    inspector = Inspector(tmp_path / "data" / "counter_csharp.etdp")
    events = [e for block in inspector.event_blocks for e in block.events]
    assert any("add" in str(event.name) for event in events)
    report = explain(tmp_path / "data" / "counter_csharp.rlfr", tmp_path / "data" / "counter.pte")
    assert "0 inputs" in str(report)
