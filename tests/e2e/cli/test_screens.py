"""What the commands print fits the screen, in a pipe and on a terminal, and breaks no word."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import torch
from rich.cells import cell_len
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app

METHOD = "a_method_whose_name_is_as_long_as_a_sentence"
MODEL = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a_projection_that_has_a_very_long_name = torch.nn.Linear(8, 8)

    def forward(self, hidden_states_of_the_previous_layer):
        x = self.a_projection_that_has_a_very_long_name(hidden_states_of_the_previous_layer)
        return torch.erfinv(torch.tanh(x)).cumsum(-1) + torch.logcumsumexp(x, -1)

class Bad(Block):
    def forward(self, hidden_states_of_the_previous_layer):
        if hidden_states_of_the_previous_layer.sum() > 0:
            return hidden_states_of_the_previous_layer
        return super().forward(hidden_states_of_the_previous_layer)

def build():
    torch.manual_seed(0)
    return Block().eval(), (torch.ones(2, 8),)

def bad():
    return Bad().eval(), (torch.ones(2, 8),)

def data():
    return [(torch.ones(2, 8),)]
"""
STEADY = (
    "inspect model.pte",
    "run model.pte --random",
    f"run model.pte --random --method {METHOD}",
    "ops conv",
    "recipes",
    "doctor model.py:build",
    "doctor model.py:bad",
    "export model.py:build --backend cpu -o other.pte",
    "accuracy model.py:build --calibrate model.py:data",
)
TIMED = (
    "bench model.pte --repeat 2 --operators",
    "bench model.pte --repeat 2 --compare",
    "profile model.pte --repeat 2",
)
HELP = ("export", "doctor", "run", "bench", "recipes", "accuracy", "profile", "inspect", "ops")
_OWN = re.compile(r"left out for lack of room: .*|[─━┏┓┗┛┡┩┃│└┘├┤┼┴┬╇…]+")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model and its program, with two methods."""
    folder = tmp_path_factory.mktemp("screens")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    space: dict[str, object] = {}
    exec(compile(MODEL, str(folder / "model.py"), "exec"), space)
    model, args = space["build"]()  # type: ignore[operator]
    program = torch.export.export(model, args)
    rl.export({"forward": program, METHOD: program}, backend="cpu").save(
        folder / "model.pte", quiet=True
    )
    return folder


def _printed(command: str, columns: int) -> str:
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": str(columns)})
    assert done.exit_code in (0, 1) and done.stdout, done.output
    return done.stdout


def _check_width(text: str, columns: int) -> None:
    wide = [line for line in text.splitlines() if cell_len(line) > columns]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize("command", TIMED)
def test_fits_in_a_pipe(command: str, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    for columns in (60, 80):
        _check_width(_printed(command, columns), columns)


@pytest.mark.parametrize("command", STEADY)
def test_fits_and_breaks_no_word(command: str, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    known = set(_OWN.sub(" ", _printed(command, 2000)).split())
    # A name that no column can hold may be broken behind a dot or the like.
    pieces = {part for word in known for part in _tails_and_heads(word)}
    _check_width(_printed(command, 60), 60)
    text = _printed(command, 80)
    _check_width(text, 80)
    too_wide = " ".join(word for word in known if cell_len(word) > 76)
    broken = set(_OWN.sub(" ", text).split()) - known - pieces
    assert not {part for part in broken if part not in too_wide}


def _tails_and_heads(word: str) -> list[str]:
    places = [0, *(m.end() for m in re.finditer(r"[._/:,(]", word)), len(word)]
    return [word[a:b] for i, a in enumerate(places) for b in places[i + 1 :]]


@pytest.mark.parametrize("command", HELP)
def test_help_fits(command: str) -> None:
    _check_width(_printed(f"{command} --help", 80), 80)


def test_a_new_backend_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _check_width(_printed("new-backend the-longest-name-of-all", 80), 80)


def test_no_heading_wraps_where_there_is_room(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    assert re.search(r"GFLOP/s +of peak +GB/s", _printed("profile model.pte --repeat 2", 120))


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        ("inspect model.pte", 60),
        ("inspect model.pte", 200),
        ("profile model.pte --repeat 2", 80),
        ("doctor model.py:bad", 80),
    ],
)
def test_fits_on_a_terminal(command: str, columns: int, made: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    process = subprocess.Popen(
        [sys.executable, "-m", "rushlight.cli", *command.split()],
        cwd=made, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert process.wait(60) in (0, 1)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r", "")
    assert "forward" in plain and "Traceback" not in plain
    _check_width(plain, columns)
