"""Linked code and constants of selective builds stay below their ceilings, for one instruction set.

The ceilings are what the builds took with GCC, and at most a tenth more; those of whole models are
below their goals, which `benchmarks/tools/selective_size.py` has.
"""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import pytest
from benchmarks.tools.selective_size import GOALS, export

from rushlight.selective.build import build
from rushlight.selective.selection import Options

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
LOOPS = "kernels/portable/loops/elementwise/"
KB = 1024
CEILINGS = {"mlp": 70 * KB, "mobilenet_v2": 154 * KB, "minilm": 205 * KB}

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or shutil.which("cmake") is None,
        reason="sizes are those of x86-64; needs cmake",
    ),
]


@pytest.mark.parametrize(
    ("program", "ceiling"), [("add", 66 * KB), ("cpu_engine_v3_rows", 151 * KB)]
)
def test_full_a_build_stays_small(program: str, ceiling: int, tmp_path: Path) -> None:
    rows = build([GOLDEN / f"{program}.pte"], Options("app", isa="avx2", module=False), tmp_path)
    size = sum(row.bytes for row in rows)
    assert size <= ceiling, [(row.name, row.bytes) for row in rows]
    if program == "add":  # the loops of one operator in one type, and no other
        assert {row.name for row in rows if not row.shared} == {"aten::add.out"}
        files = json.loads((tmp_path / "size.json").read_text())["files"]
        loops = {f["name"]: f["bytes"] for f in files if f["name"].startswith(LOOPS)}
        assert 0 < sum(loops.values()) < 4 * KB, loops


@pytest.mark.parametrize("name", GOALS)
def test_full_a_model_meets_its_goal(name: str, tmp_path: Path) -> None:
    program = tmp_path / f"{name}.pte"
    export(name, program)
    rows = build([program], Options("app", isa="avx2", module=False), tmp_path / "app")
    size = sum(row.bytes for row in rows)
    assert CEILINGS[name] <= GOALS[name][2]
    assert size <= CEILINGS[name], [(row.name, row.bytes) for row in rows]
