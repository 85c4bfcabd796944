"""Linked code and constants of selective builds stay below their ceilings, for one instruction set.

The ceilings are what the builds took with GCC, and a tenth more; whole models are measured beside
their goals by `benchmarks/tools/selective_size.py`.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from rushlight.selective.build import build
from rushlight.selective.selection import Options

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
KB = 1024

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or shutil.which("cmake") is None,
        reason="sizes are those of x86-64; needs cmake",
    ),
]


@pytest.mark.parametrize(
    ("program", "ceiling"), [("add", 80 * KB), ("cpu_engine_v3_rows", 244 * KB)]
)
def test_full_a_build_stays_small(program: str, ceiling: int, tmp_path: Path) -> None:
    parts = build([GOLDEN / f"{program}.pte"], Options("app", isa="avx2", module=False), tmp_path)
    size = sum(part.bytes for part in parts)
    assert size <= ceiling, [(part.name, part.bytes) for part in parts[:10]]
    if program == "add":  # the loops of one operator in one type, and no other
        named = {part.name: part.bytes for part in parts}
        assert named["binary.cpp"] < 4 * KB and "unary.cpp" not in named
