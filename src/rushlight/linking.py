"""Where this installation's half for C and C++ lies, for the projects that link it."""

from __future__ import annotations

from pathlib import Path

from rushlight.errors import Code, Error


def cmake_dir() -> Path:
    """The folder of the CMake package, for `find_package(rushlight)`: ``-D rushlight_DIR=…``.

    An installed package has libraries for its own system, and the sources. In a checkout the CMake
    package compiles the sources as a part of the project that asks.

    Raises:
        Error: if this package was installed without its half for C and C++.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "lib" / "cmake" / "rushlight", package.parents[1] / "cmake"):
        if (folder / "rushlight-config.cmake").is_file():
            return folder
    raise Error(
        f"{package} has no CMake package: it was installed without C++ (wheel.cmake=false). "
        "Install a wheel that was built with it: pip install --force-reinstall rushlight",
        code=Code.NOT_FOUND,
    )
