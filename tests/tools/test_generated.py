"""The generated files that are checked in are what the generators write today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("generator", [["-m", "codegen.schema"], ["codegen/kernel_table.py"]])
def test_generated_files_are_current(generator: list[str]) -> None:
    command = [sys.executable, *generator, "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run `make generate`:\n{done.stdout}{done.stderr}"
