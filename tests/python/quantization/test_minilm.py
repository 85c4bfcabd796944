"""all-MiniLM-L6-v2, with its real weights, finds the same sentences similar in integers.

Similarities of all pairs of the sentences in `sentences.txt` are ranked, and the ranks correlated
with those of the float model (Spearman).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import models
from tokenizers import Tokenizer

import rushlight

LENGTH = 20
FOLDER = Path(__file__).parent
SENTENCES = (FOLDER / "sentences.txt").read_text(encoding="utf-8").splitlines()
OTHERS = (FOLDER / "calibration.txt").read_text(encoding="utf-8").splitlines()
Tokens = tuple[torch.Tensor, torch.Tensor]
Embed = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(scope="module")
def minilm() -> torch.nn.Module:
    return models.build("minilm").module.eval()


def tokens_of(sentences: list[str]) -> Tokens:
    """Ids and mask, [sentences, LENGTH]."""
    tokenizer = Tokenizer.from_file(str(models.minilm_dir() / "tokenizer.json"))
    tokenizer.enable_padding(length=LENGTH)
    tokenizer.enable_truncation(LENGTH)
    encoded = tokenizer.encode_batch(sentences)
    ids = torch.tensor([one.ids for one in encoded])
    return ids, torch.tensor([one.attention_mask for one in encoded])


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return tokens_of(SENTENCES)


def ranks(embed: Embed, tokens: Tokens) -> np.ndarray:
    """The rank of each pair's similarity."""
    ids, mask = tokens
    with torch.no_grad():
        states = torch.cat([embed(ids[i : i + 1], mask[i : i + 1]) for i in range(len(ids))])
    weight = mask.unsqueeze(-1).float()
    mean = torch.nn.functional.normalize((states * weight).sum(1) / weight.sum(1), dim=-1)
    first, second = np.triu_indices(len(ids), 1)
    similarity = (mean @ mean.T).numpy()[first, second]
    return similarity.argsort().argsort()


@pytest.fixture(scope="module")
def exact(minilm: torch.nn.Module, tokens: Tokens) -> np.ndarray:
    return ranks(lambda x, mask: minilm(x, attention_mask=mask), tokens)


@pytest.mark.parametrize(
    ("recipe", "least"),
    [("int8-dynamic", 0.99), pytest.param("int4-dynamic", 0.97, marks=pytest.mark.full)],
)
def test_similarities_keep_their_order(
    recipe: str,
    least: float,
    minilm: torch.nn.Module,
    tokens: Tokens,
    exact: np.ndarray,
) -> None:
    ids, mask = tokens
    example = ((ids[:1],), {"attention_mask": mask[:1]})
    data = None
    if recipe == "int4-dynamic":
        data = [(x[None], m[None]) for x, m in zip(*tokens_of(OTHERS), strict=True)]
    program = rushlight.export(minilm, *example, backend="cpu", quantize=recipe, calibrate=data)
    module = rushlight.load(program.buffer)
    actual = ranks(lambda x, mask: module(x, attention_mask=mask), tokens)
    assert np.corrcoef(actual, exact)[0, 1] >= least
    assert (actual != exact).any(), "nothing was quantised"
