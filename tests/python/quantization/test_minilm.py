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
from tokenizers import Tokenizer

import rushlight
from benchmarks import models

LENGTH = 20
SENTENCES = (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
Embed = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(scope="module")
def minilm() -> torch.nn.Module:
    return models.build("minilm").module.eval()


@pytest.fixture(scope="module")
def tokens() -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask, [sentences, LENGTH]."""
    tokenizer = Tokenizer.from_file(str(models.minilm_dir() / "tokenizer.json"))
    tokenizer.enable_padding(length=LENGTH)
    tokenizer.enable_truncation(LENGTH)
    encoded = tokenizer.encode_batch(SENTENCES)
    ids = torch.tensor([one.ids for one in encoded])
    return ids, torch.tensor([one.attention_mask for one in encoded])


def ranks(embed: Embed, tokens: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
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
def exact(minilm: torch.nn.Module, tokens: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
    return ranks(lambda x, mask: minilm(x, attention_mask=mask), tokens)


@pytest.mark.parametrize(("recipe", "least"), [("int8-dynamic", 0.99), ("int4-dynamic", 0.97)])
def test_similarities_keep_their_order(
    recipe: str,
    least: float,
    minilm: torch.nn.Module,
    tokens: tuple[torch.Tensor, torch.Tensor],
    exact: np.ndarray,
) -> None:
    ids, mask = tokens
    example = ((ids[:1],), {"attention_mask": mask[:1]})
    program = rushlight.export(minilm, *example, backend="cpu", quantize=recipe)
    module = rushlight.load(program.buffer)
    found = ranks(lambda x, mask: module(x, attention_mask=mask), tokens)
    assert np.corrcoef(found, exact)[0, 1] >= least
    assert (found != exact).any(), "nothing was quantised"
