"""A tiny model with a tokenizer and a chat template, and its runner."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_model import make_model, make_tokenizer, save

import rushlight.llm
from rushlight.llm.runner import Runner
from shared_files import SharedFiles


@pytest.fixture(scope="session")
def program(shared_files: SharedFiles) -> Path:
    def fill(folder: Path) -> None:
        save(make_model(), make_tokenizer(), folder / "tiny.pte", embed=True, adapters=8)

    return shared_files.folder("tiny", fill) / "tiny.pte"


@pytest.fixture(scope="session")
def runner(program: Path) -> Runner:
    return rushlight.llm.load(program, threads=1)
