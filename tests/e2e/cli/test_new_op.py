"""`rushlight new-op`: what it writes passes its own tests, and is installed by pip."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rushlight.cli import app

ROOT = Path(__file__).resolve().parents[3]
SNAKE = "acme::snake(Tensor x, float a) -> Tensor"
MANY = (
    "acme::many(Tensor? mask, Tensor[] rest, Tensor x, int n, float[]? w, str mode, bool flag, "
    "Scalar s, Tensor?[] o, Tensor y) -> (Tensor, Tensor)"
)


def _new(schema: str, folder: Path) -> Path:
    result = CliRunner().invoke(app, ["new-op", schema, "--dir", str(folder)])
    assert result.exit_code == 0, result.output
    (project,) = folder.iterdir()
    assert f"pip install -e {project}" in result.output
    return project


def _run(*command: str | Path, folder: Path, **variables: str) -> str:
    own = ("PYTHONPATH", "PYTEST_ADDOPTS")
    environment = {k: v for k, v in os.environ.items() if k not in own} | variables
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def _build(project: Path) -> str:
    """Compile the kernel with the headers of the project alone; returns the module's name."""
    (source,) = project.glob("*.cpp")
    name = source.stem
    flags = ("-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    library = project / name / f"{name}.so"
    _run("g++", *flags, "-I", "include", source, "-o", library, folder=project)
    return name


@pytest.mark.parametrize("schema", [SNAKE, pytest.param(MANY, marks=pytest.mark.full)])
def test_what_is_written_passes_its_tests(schema: str, tmp_path: Path) -> None:
    project = _new(schema, tmp_path)
    _build(project)
    chosen = "" if schema == MANY else "agree or dynamic or another"
    report = _run(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "-k", chosen),
        folder=project,
        PYTHONPATH=f"{ROOT / 'src'}{os.pathsep}{project}",
    )
    assert ("9 passed" if schema == MANY else "3 passed") in report


@pytest.mark.full
@pytest.mark.parametrize("form", [[], ["-e"]], ids=["copied", "editable"])
def test_full_a_new_operator_is_installed_and_works(form: list[str], tmp_path: Path) -> None:
    project = _new(SNAKE, tmp_path)
    place = tmp_path / "environment"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    (site / "ours.pth").write_text(f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    switches = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    _run(*pip, "install", *switches, *form, project, folder=tmp_path)
    # What is installed is tested, not the folder.
    report = _run(
        *(python, "-P", "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider"),
        project / "tests",
        folder=tmp_path,
    )
    assert "9 passed" in report
    times = _run(python, "-P", project / "benchmark.py", folder=tmp_path)
    assert "Whole on cpu" in times and "Decomposed on portable" in times


@pytest.mark.parametrize("schema", [SNAKE, MANY])
def test_what_is_written_is_in_the_houses_form(schema: str, tmp_path: Path) -> None:
    project = _new(schema, tmp_path)
    ruff = (sys.executable, "-m", "ruff")
    _run(*ruff, "check", "--no-cache", project, folder=project)
    _run(*ruff, "format", "--no-cache", "--check", project, folder=project)
    (source,) = project.glob("*.cpp")
    lines = source.read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 100
    assert "$" not in "".join(p.read_text("utf-8") for p in project.rglob("*.py"))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("snake", "is not the schema of an operator"),
        ("acme::snake.out(Tensor x) -> Tensor", "names an overload"),
        ("acme::push(Tensor(a!) state) -> ()", "must return tensors and write no argument"),
        ("acme::halves(Tensor x) -> Tensor[]", "must return tensors and write no argument"),
        ("acme::full(int n) -> Tensor", "needs an argument that is a Tensor"),
        ("acme::snake(Tensor x, *, float a) -> Tensor", "must take its arguments by position"),
        ("acme::snake(Tensor lambda) -> Tensor", "a word of Python, 'lambda'"),
        ("acme::snake(Device d, Tensor x) -> Tensor", "which no kernel takes"),
    ],
)
def test_schemas_that_it_does_not_write(schema: str, message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["new-op", schema, "--dir", str(tmp_path)])
    assert result.exit_code == 1 and message in result.output, result.output
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    _new(SNAKE, tmp_path)
    result = CliRunner().invoke(app, ["new-op", SNAKE, "--dir", str(tmp_path)])
    assert result.exit_code == 1 and "is there already" in result.output
