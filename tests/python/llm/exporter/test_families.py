"""The step of every family computes what its `transformers` model computes."""

from __future__ import annotations

import pytest
import torch
from llm_models import CASES, small_model

from rushlight.ir.custom_ops.cached_attention import EagerCache
from rushlight.llm.exporter.families import decoder_of
from rushlight.llm.exporter.step import Step

PIECES = (1, 100, 7, 148, *[1] * 24)


def _logits(step: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    """The logits of all tokens of one sequence, given in pieces."""
    results, first = [], 0
    with EagerCache().active(), torch.no_grad():
        for piece in PIECES:
            part = tokens[first : first + piece]
            positions = torch.arange(first, first + piece)
            results.append(step(part, positions, torch.zeros_like(part), torch.arange(piece)))
            first += piece
    return torch.cat(results)


@pytest.mark.parametrize("case", CASES)
def test_step_equals_transformers(case: str) -> None:
    model = small_model(case)
    tokens = torch.randint(0, model.config.vocab_size, (sum(PIECES),))
    with torch.no_grad():
        wanted = model(tokens[None]).logits[0]
    got = _logits(Step(*decoder_of(model, 512)), tokens)
    assert (got - wanted).abs().max() < 1e-4 * wanted.abs().max()
    assert torch.equal(got.argmax(1), wanted.argmax(1))
