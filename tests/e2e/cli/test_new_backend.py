"""`rushlight new-backend`: what it writes is installed by pip and works, in Python and in C."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rushlight.cli import app, new_backend

ROOT = Path(__file__).resolve().parents[3]
EXPORT = """
import torch, rushlight as rl

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x * x + x)

program = rl.export(Model(), (torch.ones(2, 3),), backend="{name}")
program.save("model.pte", quiet=True)
"""
LOAD = """
import sys
import numpy as np, rushlight as rl
x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
module = rl.load("model.pte", check_backends=True)
np.testing.assert_allclose(module(x), np.tanh(x * x + x), rtol=1e-5)
assert "torch" not in sys.modules
print(rl.runtime.backend_registry.registered_backend_names)
"""


def _run(*command: str | Path, folder: Path) -> str:
    own = ("PYTHONPATH", "PYTEST_ADDOPTS")
    environment = {k: v for k, v in os.environ.items() if k not in own}
    environment |= {"RUSHLIGHT_CACHE": str(folder / "cache"), "MYPYPATH": str(ROOT / "src")}
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


def _environment(folder: Path) -> Path:
    """The Python of a virtual environment of its own, which sees what this one has."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    base = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", vars=base))
    (site / "ours.pth").write_text(f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n")
    return python


def _new(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["new-backend", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("name", "option", "form"),
    [
        ("acme", [], []),
        pytest.param("my-npu", ["--c"], ["-e"], marks=pytest.mark.full),
        pytest.param("acme", [], ["-e"], marks=pytest.mark.full),
        pytest.param("my-npu", ["--c"], [], marks=pytest.mark.full),
    ],
)
def test_a_new_backend_is_installed_and_works(
    name: str, option: list[str], form: list[str], tmp_path: Path
) -> None:
    output = _new(name, "--dir", tmp_path, *option)
    project = tmp_path / f"{name}-backend"
    assert f"pip install -e {project}" in output
    python = _environment(tmp_path / "environment")
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    switches = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    _run(*pip, "install", *switches, *form, project, folder=tmp_path)
    # What is installed is tested, not the folder.
    report = _run(
        *(python, "-P", "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider"),
        project / "tests",
        folder=tmp_path,
    )
    assert "5 passed" in report
    _run(python, "-c", EXPORT.format(name=name), folder=tmp_path)
    prefix = "Acme" if name == "acme" else "MyNpu"
    assert f"{prefix}Backend" in _run(python, "-c", LOAD, folder=tmp_path)


def test_what_is_written_is_in_the_houses_form(tmp_path: Path) -> None:
    _new("acme", "--c", "--dir", tmp_path)
    project = tmp_path / "acme-backend"
    _run(sys.executable, "-m", "ruff", "check", "--no-cache", project, folder=project)
    _run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", project, folder=project)
    assert "skeleton" not in "".join(
        path.read_text("utf-8").lower() for path in project.rglob("*") if path.is_file()
    )
    include, source = f"-I{project}", project / "acme_backend.c"
    strict = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only")
    _run("cc", *strict, include, source, folder=project)


@pytest.mark.full
def test_full_what_is_written_has_no_fault_of_types(tmp_path: Path) -> None:
    _new("acme", "--dir", tmp_path)
    # Ours is not installed there: what mypy says of it is said by the check of our own.
    silent = "--follow-imports=silent"
    _run(sys.executable, "-m", "mypy", silent, folder=tmp_path / "acme-backend")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Acme", "'Acme' is not a name for a backend"),
        ("9lives", "is not a name for a backend"),
        ("a--b", "is not a name for a backend"),
        ("../acme", "is not a name for a backend"),
        ("a" * 25, "at most 24 characters"),
        ("lambda", "'lambda' is a word of Python"),
        ("portable", "there is the name of the runtime's own kernels"),
        ("demo", "'demo' is taken"),
    ],
)
def test_names_that_are_refused(name: str, message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["new-backend", name, "--dir", str(tmp_path)])
    assert result.exit_code == 1 and message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_names_that_others_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "theirs_backend.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "path"))

    def offered(group: str, name: str) -> list[str]:
        return {
            ("rushlight.backends", "installed"): ["one"],
            ("rushlight.runtime_backends", "HalfBackend"): ["one"],
        }.get((group, name), [])

    monkeypatch.setattr(new_backend.metadata, "entry_points", offered)
    for name, message in {
        "theirs": "a package theirs_backend that can be imported",
        "installed": "an installed backend",
        "half": "an installed runtime of HalfBackend",
    }.items():
        result = CliRunner().invoke(app, ["new-backend", name, "--dir", str(tmp_path / "to")])
        assert result.exit_code == 1 and f"{name!r} is taken: there is {message}" in result.stderr


def test_folders_that_are_refused(tmp_path: Path) -> None:
    _new("acme", "--dir", tmp_path)
    before = (tmp_path / "acme-backend" / "README.md").stat().st_mtime_ns
    again = CliRunner().invoke(app, ["new-backend", "acme", "--dir", str(tmp_path)])
    assert again.exit_code == 1 and "is there already: give another name" in again.stderr
    assert (tmp_path / "acme-backend" / "README.md").stat().st_mtime_ns == before
    (tmp_path / "file").write_text("")
    nowhere = CliRunner().invoke(app, ["new-backend", "acme", "--dir", str(tmp_path / "file")])
    assert nowhere.exit_code == 1 and "cannot be written" in nowhere.stderr
