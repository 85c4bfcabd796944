"""Builds a selective runtime into a folder: static library, header, CMake package, report."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rushlight.errors import Code, Error
from rushlight.files import write_text
from rushlight.selective.by_operator import Row, rows_of
from rushlight.selective.link_map import parts_of
from rushlight.selective.selection import Options, write_selection
from rushlight.selective.sources import Sources, source_root

_PROJECT = """\
# Written by `rushlight build`.
cmake_minimum_required(VERSION 3.18...3.31)
project({name} LANGUAGES CXX)
include("{root}/cmake/RushlightSelect.cmake")
rushlight_add_library({name} PROGRAMS {programs} {options})
rushlight_install_library({name})
rushlight_measure_library({name} "${{CMAKE_CURRENT_BINARY_DIR}}/measured")
"""
_LINES = 30  # of a compiler's output that an error shows


def build(
    programs: Sequence[Path],
    options: Options,
    out: Path,
    target: str = "",
    jobs: int | None = None,
    leave_out: Sequence[str] = (),
    keep_map: Path | None = None,
) -> list[Row]:
    """Build the runtime that some programs need; returns what its linked code consists of.

    Args:
        programs: the programs, which it runs, and no others.
        options: its name and form.
        out: the folder that gets `lib/`, `include/` and `size.json`; made if it is not there.
        target: a toolchain file of CMake, or the name of one in `cmake/toolchains`; "" is the host.
        leave_out: "tracing" and "failure-reports", each of which the runtime may do without.
        jobs: how many compilers run at once; None leaves it to CMake's generator.
        keep_map: a file that gets the linker's map of what was measured.

    Raises:
        LoadError: a program cannot be read.
        Error: there is no CMake or compiler, or the build fails; says what to install or what the
            compiler says.
    """
    root = source_root()
    toolchain = _toolchain(target, root)
    cmake = shutil.which("cmake")
    if cmake is None:
        raise Error(
            "there is no cmake on PATH, which builds the runtime: install it (`pip install cmake "
            "ninja`; on Debian, `apt install cmake g++`)",
            code=Code.NOT_FOUND,
        )
    with tempfile.TemporaryDirectory(prefix="rushlight-build-") as name:
        folder = Path(name)
        # What is wrong with the programs is told by an error of its own, not by CMake.
        uses = write_selection(programs, options, folder / "selection", root)
        (folder / "CMakeLists.txt").write_text(_project(programs, options, root), encoding="utf-8")
        configure = [cmake, "-S", name, "-B", f"{name}/build", *toolchain]
        configure += [
            "-D",
            "CMAKE_BUILD_TYPE=MinSizeRel",
            "-D",
            f"Python3_EXECUTABLE={sys.executable}",
        ]
        configure += ["-D", f"CMAKE_INSTALL_PREFIX={out.resolve()}"]
        for part in leave_out:
            configure += ["-D", f"RUSHLIGHT_{part.upper().replace('-', '_')}=OFF"]
        if shutil.which("ninja") and "CMAKE_GENERATOR" not in os.environ:
            configure += ["-G", "Ninja"]
        _run(configure, "CMake cannot configure the build", compiler=True)
        parallel = ["--parallel", *([str(jobs)] if jobs else [])]
        _run([cmake, "--build", f"{name}/build", *parallel], "the build fails")
        _run([cmake, "--install", f"{name}/build"], f"the library cannot be installed in {out}")
        sources = Sources(root)
        link_map = folder / "build" / "measured.map"
        parts = parts_of(link_map, set(sources.includes))
        if keep_map is not None:
            shutil.copy(link_map, keep_map)
        shutil.copy(
            folder / "build" / f"{options.name}.selection" / "selection.json",
            out / "selection.json",
        )
    rows = rows_of(parts, uses, sources, options)
    report = {
        "version": 2,
        "rows": [row.to_json() for row in rows],
        "files": [part.to_json() for part in parts],
    }
    write_text(out / "size.json", json.dumps(report, indent=1) + "\n")
    return rows


def _project(programs: Sequence[Path], options: Options, root: Path) -> str:
    words = ["ISA", options.isa]
    words += ["EMBED"] if options.embed else []
    words += [] if options.module else ["NO_MODULE"]
    words += ["C"] if options.c else []
    quoted = " ".join(f'"{_cmake_text(path.resolve())}"' for path in programs)
    return _PROJECT.format(
        name=options.name, root=_cmake_text(root), programs=quoted, options=" ".join(words)
    )


def _cmake_text(path: Path) -> str:
    """A path inside of quotes in CMake's language."""
    text = path.as_posix()
    for special in ("\\", '"', "$", ";"):
        text = text.replace(special, f"\\{special}")
    return text


def _toolchain(target: str, root: Path) -> list[str]:
    if target in ("", "host"):
        return []
    folder = root / "cmake" / "toolchains"
    known = sorted(p.stem for p in folder.glob("*.cmake") if p.stem != "debian-cross")
    path = folder / f"{target}.cmake" if target in known else Path(target)
    if not path.is_file():
        raise Error(
            f"the target {target!r} is neither the file of a CMake toolchain nor one of "
            f"{', '.join(known)} or host",
            code=Code.INVALID_ARGUMENT,
        )
    return ["-D", f"CMAKE_TOOLCHAIN_FILE={path.resolve()}"]


def _run(command: Sequence[str], problem: str, *, compiler: bool = False) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return
    said = done.stdout + done.stderr
    absent = re.search(r"(\S+)\s+is not a full path and was not found in the PATH", said)
    if compiler and (absent or "No CMAKE_CXX_COMPILER" in said or "is not able to compile" in said):
        name = f", such as {absent[1]}" if absent else ""
        raise Error(
            f"there is no C++17 compiler that CMake can use{name}: install one (on Debian, "
            "`apt install g++`; for a target, its cross compiler), or name it in the environment "
            "variable CXX",
            code=Code.NOT_FOUND,
        )
    lines = [line for line in said.splitlines() if line.strip()][-_LINES:]
    raise Error("\n".join([f"{problem}:", *lines]), code=Code.INTERNAL)
