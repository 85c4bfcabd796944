"""A language model of characters, trained in about two minutes on Python's own help pages.

It has rotary positions, heads of 64 elements, and two heads of queries for each of keys, as larger
models have. What is left out of training measures it.
"""

from __future__ import annotations

import math
import pydoc_data.topics
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import transformers
from torch.nn import functional

import rushlight.llm
from rushlight.cli.llm.perplexity import windowed_logprobs
from rushlight.llm.runner import Runner

CHARACTERS = 128  # ASCII; a token is a character's number
CONTEXT = 256
ITERATIONS = 500
MEASURED = 16 * 1024  # characters


@cache
def text() -> torch.Tensor:
    """The help pages as tokens."""
    pages = pydoc_data.topics.topics
    data = "\n".join(pages[name] for name in sorted(pages)).encode("ascii", "ignore")
    return torch.tensor(list(data))


def measured_text() -> list[int]:
    """What no training step sees."""
    tokens: list[int] = text()[-MEASURED:].tolist()
    return tokens


def train(iterations: int = ITERATIONS) -> Any:
    """A model that was trained for some iterations, the same one each time."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=CHARACTERS,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=0,
    )
    model = transformers.LlamaForCausalLM(config)
    tokens = text()[:-MEASURED]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=iterations)
    for _ in range(iterations):
        starts = torch.randint(len(tokens) - CONTEXT - 1, (16, 1))
        batch = tokens[starts + torch.arange(CONTEXT + 1)]
        logits = model(batch[:, :-1]).logits
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval().requires_grad_(False)


def perplexity(score: Callable[[list[int]], list[float]]) -> float:
    """The perplexity of the measured text.

    Args:
        score: gives the log probabilities of a window's tokens but its first.
    """
    logprobs = windowed_logprobs(score, measured_text(), CONTEXT)
    return math.exp(-sum(logprobs) / len(logprobs))


def eager_score(model: Any) -> Callable[[list[int]], list[float]]:
    """Log probabilities as the model itself computes them."""

    def score(tokens: list[int]) -> list[float]:
        row = torch.tensor(tokens)
        logprobs = model(row[None]).logits[0, :-1].log_softmax(-1)
        return logprobs.gather(1, row[1:, None])[:, 0].tolist()

    return score


def runners(model: Any, recipe: str, caches: tuple[str, ...]) -> dict[str, Runner]:
    """The model's program, loaded with each type of cache.

    Args:
        model: what `train` returned.
        recipe: as `quantize=` of `rushlight.llm.export`.
        caches: as `kv=` of `rushlight.llm.load`.
    """
    program = rushlight.llm.export(model, quantize=recipe, wanted=CONTEXT, verify=False)
    return {kv: rushlight.llm.load(program.buffer, threads=1, kv=kv) for kv in caches}
