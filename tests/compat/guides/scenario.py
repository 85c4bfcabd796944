"""Scenarios: files that are written and commands that are run, in a folder of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILES = Path(__file__).resolve().parent / "nanogpt"
CUSTOM_LINEAR = FILES.parent / "custom_linear"
CHECKOUT = ROOT / "compat" / "executorch"  # what a project names in add_subdirectory
SECONDS = 1800

Check = Callable[[str, Path], None]


class StepFailedError(Exception):
    """A command of a scenario failed; the text is what it printed."""


@dataclass
class Step:
    """A command, and the files that it needs.

    Attributes:
        command: with `python` for the interpreter that has the alias.
        files: by their names in the scenario's folder.
        stdin: what it reads.
        check: gets what it printed and the folder, and raises AssertionError.
    """

    command: list[str]
    files: dict[str, str] = field(default_factory=dict)
    stdin: str = ""
    check: Check | None = None


@dataclass
class Scenario:
    """A part of a guide.

    Attributes:
        name: for the table.
        steps: in their order.
        copies: files beside the guide's own, which a reader downloads.
        has_checkout: whether ExecuTorch is in third-party/executorch.
    """

    name: str
    steps: list[Step]
    copies: list[Path] = field(default_factory=list)
    has_checkout: bool = False

    def run(self, folder: Path, options: Sequence[str] = ()) -> float:
        """Runs the steps in a folder, CMake with options besides. Returns seconds.

        Raises:
            StepFailedError: a command fails, or does not print what it should.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for path in self.copies:
            shutil.copy(path, folder)
        checkout = folder / "third-party" / "executorch"
        if self.has_checkout and not checkout.exists():
            checkout.parent.mkdir()
            checkout.symlink_to(CHECKOUT, target_is_directory=True)
        start = time.monotonic()
        for step in self.steps:
            _run(step, folder, options)
        return time.monotonic() - start


def python(name: str, code: str, check: Check | None = None) -> Step:
    """A script that is run by Python."""
    return Step(["python", name], {name: code}, check=check)


def _run(step: Step, folder: Path, options: Sequence[str]) -> None:
    for name, text in step.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable if part == "python" else part for part in step.command]
    if command[:2] == ["cmake", "-S"]:
        command += options
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "compat" / "python"), str(folder)]),
        "EXECUTORCH_TORCH_SHIMS": "1",
        "NANOGPT_TEXT": str(ROOT / "examples" / "data" / "almanac.txt"),
    }
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=step.stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    (folder / "output.txt").write_text(ended.stdout, encoding="utf-8")
    if ended.returncode != 0:
        raise StepFailedError(
            f"{' '.join(step.command)} ended with {ended.returncode}:\n{ended.stdout}"
        )
    if step.check is not None:
        try:
            step.check(ended.stdout, folder)
        except AssertionError as error:
            raise StepFailedError(f"{' '.join(step.command)}: {error}\n{ended.stdout}") from error


def install_runtime(folder: Path) -> list[str]:
    """Installs what `make ext` built. Returns CMake's options to use it, so that a part of a guide
    does not compile the runtime again."""
    build = ROOT / "build" / "dev"
    if not (build / "CMakeCache.txt").exists():
        return []
    command = ["cmake", "--install", str(build), "--prefix", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [f"-Drushlight_DIR={folder}/lib/cmake/rushlight"]
