"""A tiny model with a tokenizer and a chat template, and its runner."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_model import make_model, make_tokenizer, save

import rushlight.llm
from rushlight.llm.runner import Runner


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    return save(make_model(), make_tokenizer(), folder / "tiny.pte", adapters=8)


@pytest.fixture(scope="session")
def runner(program: Path) -> Runner:
    return rushlight.llm.load(program, threads=1)
