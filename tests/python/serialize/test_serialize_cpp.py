"""The C++ verifier and views, built with sanitizers, over damaged files that we write."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import serialize_cases as cases

from rushlight.serialize.pte import write_pte

ROOT = Path(__file__).resolve().parents[3]
ROUNDS = 2000


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/cpp/program/test_flatbuffer.cpp as an executable."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None, "a C++ compiler is needed to build the runtime, and for this test"
    folder = tmp_path_factory.mktemp("flatbuffer")
    (folder / "rushlight").symlink_to(ROOT / "cpp")
    flags = "-std=c++17 -O1 -g -Wall -Wextra -Werror -fno-exceptions -fno-rtti".split()
    includes = [f"-I{folder}", "-Itests/cpp/support"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = ["tests/cpp/program/test_flatbuffer.cpp", "cpp/program/flatbuffer.cpp"]
    subprocess.run(
        [compiler, *flags, *sanitizers, *includes, *sources, "-o", str(folder / "checker")],
        cwd=ROOT,
        check=True,
    )
    return folder / "checker"


def test_verifier_under_sanitizers(checker: Path, tmp_path: Path) -> None:
    files = []
    for make in (cases.add_program, cases.plain_program, cases.full_program):
        files.append(tmp_path / f"{make.__name__}.pte")
        files[-1].write_bytes(write_pte(make()))
    done = subprocess.run(
        [str(checker), str(ROUNDS), *map(str, files)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("damaged copies still verify") == len(files)
