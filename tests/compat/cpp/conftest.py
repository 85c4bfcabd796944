"""What the tests of ExecuTorch's C++ interface share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shared_files import SharedFiles

CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")


@pytest.fixture(scope="session")
def prefix(shared_files: SharedFiles) -> Path:
    """A folder with the installed runtime."""
    dev = Path(__file__).resolve().parents[3] / "build" / "dev"
    assert (dev / "CMakeCache.txt").exists(), "run `make ext` first"

    def fill(folder: Path) -> None:
        done = subprocess.run(
            [CMAKE, "--install", dev, "--prefix", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return shared_files.folder("compat_prefix", fill)
