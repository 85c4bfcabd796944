"""The environment that has the viewers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from browsing import browser, page  # noqa: F401

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def viewers() -> Path:
    """The folder of the environment with the viewers, made if it is missing or has others."""
    from filelock import FileLock

    folder = ROOT / ".venv-viewers"
    with FileLock(f"{folder}.lock"):
        subprocess.run(["make", "viewers"], cwd=ROOT, check=True)
    return folder
