"""The small models of the tests of `rushlight.llm`, and one that is trained."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers
from benchmarks.llm import character_model

from shared_files import SharedFiles

TESTS = Path(__file__).resolve().parents[2] / "python" / "llm"
sys.path += [str(TESTS), str(TESTS / "exporter")]


@pytest.fixture(scope="session")
def trained(shared_files: SharedFiles) -> Callable[[], Any]:
    """Makes a copy of the model of characters, which is trained once for all processes."""

    def fill(folder: Path) -> None:
        character_model.train().save_pretrained(folder)

    def copy() -> Any:
        folder = shared_files.folder("characters", fill)
        return transformers.LlamaForCausalLM.from_pretrained(folder).eval().requires_grad_(False)

    return copy
