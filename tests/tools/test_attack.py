"""A share of the attack (`make attack`): mutants of the golden files, and of a program with all
that travels in named data and a data file, are refused or run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runtime_programs import (
    add,
    binary,
    contract,
    data_file,
    program,
    tensor_value,
    with_external_weight,
)

from attack import __main__ as command
from attack import mutants, seeds, worker

MUTANTS = 300


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What is attacked here: nothing that PyTorch is needed for."""
    seeds.write_seeds(tmp_path, exported=False)
    lines = [["n", "op", 0, 7, "forward", "x + y", "m"]]
    debug = {"version": 1, "files": ["model.py"], "methods": {"forward": lines}}
    value = tensor_value({"min": 1, "max": 4, "sym": "s0"}, 2, name="x")
    named = contract([value, {**value, "name": "y"}], [value])
    image = program(
        binary("aten::add.out", 4, 2, dynamic=True), contract={"forward": named}, debug=debug
    )
    (tmp_path / "named.pte").write_bytes(image)
    (tmp_path / "external.pte").write_bytes(with_external_weight())
    (tmp_path / "external.ptd").write_bytes(data_file(3))
    return tmp_path


def test_mutants_are_refused_or_run(folder: Path) -> None:
    told = list(command.attack(folder, 0, MUTANTS))
    assert [number for number, _, _ in told] == list(range(MUTANTS))
    assert [one for one in told if one[2].startswith("finding")] == []
    kinds = {what.split(": ")[1] for _, what, _ in told}
    assert kinds == {"bytes", "tables", "payload", "json", "data bytes", "data tables"}
    assert sum(result == "ran" for _, _, result in told) > MUTANTS // 10


def test_a_number_makes_the_same_mutant(folder: Path) -> None:
    files = worker.read_seeds(folder)
    for number in range(60):
        assert worker.mutant(files, number) == worker.mutant(files, number)
    assert len({worker.mutant(files, n)[1].files for n in range(60)}) > 55


CRASHES = """
import os, signal, sys, time
first = int(sys.argv[2])
print(f"start {first} a: bytes", flush=True)
if first == 0: os.kill(os.getpid(), signal.SIGSEGV)
if first == 1: time.sleep(100)
print("done 2 refused", flush=True)
"""


def test_a_crash_and_a_hang_are_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a worker that ends at its first mutant, and then waits at the next."""
    script = tmp_path / "worker.py"
    script.write_text(CRASHES)
    real = subprocess.Popen

    def start(arguments: list[str], **options: Any) -> object:
        return real([sys.executable, str(script), *arguments[3:]], **options)

    monkeypatch.setattr(command, "SECONDS", 2)
    monkeypatch.setattr(subprocess, "Popen", start)
    texts = [told for _, _, told in command.attack(tmp_path, 0, 3)]
    assert texts[0].startswith("finding ended with -11")
    assert texts[1].startswith("finding hang") and texts[2] == "refused"


def test_the_seeds_are_whole(folder: Path) -> None:
    """An attack on what does not load would find nothing."""
    for name, files in worker.read_seeds(folder):
        told = worker.attack(mutants.Mutant("none", files), 0)
        assert told == "ran", name
    assert worker.attack(mutants.Mutant("none", mutants.Files(add(2, 2))), 0) == "ran"
