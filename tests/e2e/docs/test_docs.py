"""What the documentation says is true: its code runs, its output and its commands are real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from doc_pages import FENCE, blocks_of

import rushlight as rl
from rushlight.cli import app

ROOT = Path(__file__).resolve().parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

BUILD = """
import torch

def build():
    return torch.nn.Linear(4, 2).eval(), (torch.ones(3, 4),)

def data():
    return [(torch.randn(3, 4),) for _ in range(8)]
"""


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def _without_figures(text: str) -> list[str]:
    """The lines of a report without its shares of the file's bytes, which a wording can change."""
    share = re.compile(r"[\d.,]+ (?:B|KiB)(?: +[\d.]+%|.*bytes\)) *━*")
    return [share.sub("…", line).rstrip() for line in text.splitlines()]


def _file_size(text: str) -> int:
    match = re.search(r"\(([\d,]+) bytes\)", text)
    assert match is not None
    return int(match[1].replace(",", ""))


def test_readme_code_prints_what_the_readme_says(tmp_path: Path) -> None:
    [code] = blocks_of(ROOT / "README.md", "python")
    [output] = blocks_of(ROOT / "README.md", "text")
    done = _run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert _without_figures(done.stdout) == _without_figures(output), done.stdout
    assert _file_size(done.stdout) == pytest.approx(_file_size(output), rel=0.1)


def test_quickstart_is_the_readme_code() -> None:
    [code] = blocks_of(ROOT / "README.md", "python")
    example = (ROOT / "examples" / "quickstart.py").read_text("utf-8")
    assert example.split('"""\n\n', 1)[1] == code


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.parent.name == "docs" and blocks_of(p, "python")],
    ids=lambda p: p.stem,
)
def test_code_on_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "\n".join(blocks_of(page, "python"))
    if "rl.custom_op(" in code:  # an operator is defined once in a process
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
        return
    monkeypatch.chdir(tmp_path)
    exec(code, {"__name__": page.stem})


def test_readme_commands_run(tmp_path: Path) -> None:
    commands = [
        line.partition("#")[0]
        for code in blocks_of(ROOT / "README.md", "")
        for line in code.splitlines()
        if line.startswith("rushlight ")
    ]
    assert len(commands) == 18
    (tmp_path / "model.py").write_text(BUILD, encoding="utf-8")
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    model, x = torch.nn.Linear(4, 2).eval(), torch.ones(3, 4)
    rl.bundle(rl.export(model, (x,)), [(x,)]).save(tmp_path / "model.bpte", quiet=True)
    module = rl.load(rl.export(model, (x,)).buffer, failure_report=tmp_path / "report.bin")
    with pytest.raises(rl.RunError):
        module(np.ones((4, 4), np.float32))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # A minute of compiling, which tests/e2e/selective does in `make test-full`.
    for command in (one for one in commands if not one.startswith("rushlight build")):
        done = subprocess.run(
            command.split(),
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", FENCE.sub("", page.read_text("utf-8")))
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_all_commands_stand_in_the_table() -> None:
    text = (ROOT / "docs" / "inspect.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `rushlight ([a-z-]+)", text, re.M))
    commands = [*app.registered_commands, *app.registered_groups]
    assert named == {command.name for command in commands}


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = {
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text("utf-8"), re.M)
    }
    assert named
    assert {target for _, target in named} <= targets, named


def test_entry_functions_of_the_architecture_exist() -> None:
    rows = re.findall(r"^\|(.*)\|$", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.M)
    checked = 0
    for cells in (row.split("|") for row in rows):
        folders = [ROOT / f for f in re.findall(r"`((?:src|cpp)/[^`]*)`", cells[-1])]
        files = [f for folder in folders for f in ([folder] if folder.is_file() else _code(folder))]
        text = "".join(f.read_text("utf-8") for f in files)
        for name in re.findall(r"`(?:\w+::)?(\w+)\(\)`", cells[2] if len(cells) > 2 else ""):
            assert re.search(rf"\b(?:def |Status ){name}\(", text), f"{name} is not in {folders}"
            checked += 1
    assert checked >= 12


def _code(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.suffix in (".py", ".h")]
