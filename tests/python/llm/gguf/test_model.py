"""Programs of GGUF files compute what `transformers` computes with the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from gguf_files import write_gguf
from llm_models import CASES, Session, small_model

import rushlight.llm

TOKENS = 150
NOT_IN_FILES = ("llama-dynamic", "gpt2-scaled", "qwen2")
"""Options that llama.cpp's files cannot say."""


@pytest.mark.parametrize("case", [case for case in CASES if case not in NOT_IN_FILES])
def test_logits_equal_transformers(case: str, tmp_path: Path) -> None:
    model = small_model(case)
    path = write_gguf(model, tmp_path / "model.gguf")
    program = rushlight.llm.export(path, context=512, batch=256, wanted=256, verify=False)
    tokens = torch.randint(0, model.config.vocab_size, (TOKENS,))
    with torch.no_grad():
        wanted = model(tokens[None]).logits[0]
    got = Session(program).give(tokens)
    assert (got - wanted).abs().max() < 1e-3 * wanted.abs().max()
