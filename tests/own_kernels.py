"""A library of kernels for tests of operators of the user's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rushlight import runtime

SOURCE = Path(__file__).resolve().parent / "cpp" / "kernel" / "plugins" / "snake.cpp"


def build_library(folder: Path, *flags: str) -> Path:
    """The kernels of `SOURCE` as a shared library, built with the package's headers alone.

    Args:
        folder: where it is written.
        flags: further flags of the compiler.
    """
    path = folder / "libacme.so"
    common = ["-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    command = ["g++", *common, *flags, f"-I{runtime.include_path()}", str(SOURCE), "-o", str(path)]
    subprocess.run(command, check=True)
    return path
