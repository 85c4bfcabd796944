"""Backends that bring a package of their own, tested in an environment that has it.

`tests/backends` holds the tests; RUSHLIGHT_BACKENDS_PYTHON names another environment than
`.venv-backends`, which is made if it is missing.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def backends_python() -> Path:
    """A Python with OpenVINO, NNCF and coremltools beside what this one has."""
    named = os.environ.get("RUSHLIGHT_BACKENDS_PYTHON")
    if named:
        return Path(named)
    python = ROOT / ".venv-backends" / "bin" / "python"
    if not python.exists():
        from filelock import FileLock

        with FileLock(str(ROOT / ".venv-backends.lock")):
            subprocess.run(["make", "backends"], cwd=ROOT, check=True)
    return python


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("openvino", "not full"),
        ("coreml", "not full"),
        ("nncf", "not full"),
        pytest.param("openvino", "full", marks=pytest.mark.full),
    ],
)
def test_in_an_environment_with_its_package(name: str, marks: str, backends_python: Path) -> None:
    files = sorted((ROOT / "tests" / "backends").glob(f"test_{name}*.py"))
    command = [
        backends_python,
        "-m",
        "pytest",
        "-q",
        "-m",
        marks,
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert re.search(r"[1-9]\d* passed", done.stdout)
    assert "skipped" not in done.stdout
