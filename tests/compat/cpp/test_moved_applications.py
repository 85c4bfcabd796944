"""Complete projects written for ExecuTorch run the same with it and with Rushlight."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import ExecuTorch

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "compat"
ALIAS = ROOT / "compat" / "python"
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")


def _run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _here(script: Path, folder: Path) -> str:
    return _run(sys.executable, script, folder, PYTHONPATH=str(ALIAS))


def test_recipes_export_and_run(tmp_path: Path) -> None:
    printed = _here(EXAMPLES / "recipes" / "export_and_run.py", tmp_path)
    assert printed.count("output (8, 4), error below 5 %: True") == 2


@pytest.mark.full
@pytest.mark.interop
def test_recipes_print_the_same_there(tmp_path: Path, tracing_executorch: ExecuTorch) -> None:
    script = EXAMPLES / "recipes" / "export_and_run.py"
    there = _run(tracing_executorch.python, script, tmp_path / "there")
    assert "int8" in there and there == _here(script, tmp_path / "here")


def _built(example: str, build: Path, root: Path, *options: str) -> Path:
    _run(
        *(CMAKE, "-S", EXAMPLES / example, "-B", build, "-DCMAKE_BUILD_TYPE=Release"),
        *(f"-DCMAKE_PREFIX_PATH={root}", *options),
    )
    _run(CMAKE, "--build", build, "--parallel", "2")
    return build / {"classifier": "classifier", "backend": "run_table"}[example]


def _assert_same(here: str, there: str) -> None:
    """The same words, and numbers that are near: backends sum in their own order."""
    number = re.compile(r"-?\d+\.\d+")
    assert number.sub("#", here) == number.sub("#", there)
    numbers = [float(one) for one in number.findall(there)]
    assert [float(one) for one in number.findall(here)] == pytest.approx(numbers, abs=2e-4)


@pytest.mark.full
@pytest.mark.interop
@pytest.mark.parametrize("example", ["classifier", "backend"])
def test_a_project_runs_the_same_on_both(
    example: str, tmp_path: Path, tracing_executorch: ExecuTorch, prefix: Path
) -> None:
    """Each project exports on both, is built by the same CMake file, and runs both programs."""
    python = tracing_executorch.python
    theirs = next(python.parents[1].glob("lib/python*/site-packages/executorch"))
    script = EXAMPLES / example / "export.py"
    _run(python, script, tmp_path / "there")
    _here(script, tmp_path / "here")
    found = f"-Drushlight_DIR={prefix}/lib/cmake/rushlight"
    applications = (
        _built(example, tmp_path / "build-there", theirs),
        _built(example, tmp_path / "build-here", ALIAS / "executorch", found),
    )
    for folder in (tmp_path / "there", tmp_path / "here"):
        if example == "classifier":
            images = sorted(folder.glob("*.ppm"))
            arguments = [folder / "classifier.pte", folder / "labels.txt", *images]
        else:
            arguments = [folder / "wave.pte", "-2", "0.5", "3"]
        there, here = (_run(application, *arguments) for application in applications)
        _assert_same(here, there)
        if example == "classifier":
            firsts = [line.split()[1] for line in here.splitlines()]
            assert firsts == [image.stem for image in images]
        else:
            expected = [math.exp(-math.sin(2 * x)) + x for x in (-2, 0.5, 3)]
            assert [float(word) for word in here.split()] == pytest.approx(expected, abs=1e-4)
