"""Programs of every family compute in the runtime what their `transformers` models compute."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from llm_models import CASES, Session, small_model

import rushlight.llm

PROMPT, DECODED = 256, 64
# Those of the gate: scaled rotary positions and grouped heads; windows and soft-capping; learned
# positions.
QUICK = ("llama3", "gemma2", "gpt2")
PIECES = ((PROMPT,), (1, 63, 1, 64, 127))


def _greedy(model: Any, prompt: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The text that a `transformers` model goes on with, and the logits of all of its tokens."""
    with torch.no_grad():
        text = model.generate(prompt[None], max_new_tokens=count, do_sample=False, eos_token_id=-1)
        return text[0], model(text).logits[0]


@pytest.mark.parametrize(
    "case", [c if c in QUICK else pytest.param(c, marks=pytest.mark.full) for c in CASES]
)
def test_logits_equal_transformers(case: str) -> None:
    model = small_model(case)
    prompt = torch.randint(3, model.config.vocab_size, (PROMPT,))
    text, wanted = _greedy(model, prompt, DECODED)
    program = rushlight.llm.export(model, context=512, batch=256, wanted=256)
    for pieces in PIECES:
        session = Session(program)
        got = [session.give(part) for part in prompt.split(pieces)]
        difference = (torch.cat(got) - wanted[:PROMPT]).abs().max() / wanted.abs().max()
        assert difference < 1e-3
    for i in range(DECODED):  # after the prompt in uneven pieces
        token = got[-1][-1:].argmax(-1)
        assert token == text[PROMPT + i]
        got.append(session.give(token))
    assert (torch.cat(got) - wanted).abs().max() < 1e-3 * wanted.abs().max()
    runner = rushlight.llm.load(program.buffer, threads=1, kv="float32")
    reply = runner.generate(prompt, max_tokens=DECODED, temperature=0, ignore_eos=True)
    assert reply.tokens == text[PROMPT:].tolist()
