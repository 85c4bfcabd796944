"""Embeddings of texts of mixed lengths, beside transformers in eager PyTorch, by MiniLM.

PyTorch gets all texts as one padded batch ("eager"), and in batches of texts of like length
("eager, sorted"). Both sides get token ids. The sides take turns; the medians count. Processor time
is that of all threads.

    python -m benchmarks embed --texts 32 --threads 1
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from models import minilm_dir  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import rushlight.llm  # noqa: E402

Texts = list[list[int]]
Embed = Callable[[Texts], np.ndarray]
SORTED_BATCH = 8  # texts


def texts_of(count: int, most: int) -> Texts:
    """Texts of 4 to `most` tokens, the short ones more frequent, in no order."""
    generator = random.Random(5)
    lengths = [int(4 * (most / 4) ** generator.random()) for _ in range(count)]
    return [[101, *generator.choices(range(1000, 30000), k=n - 2), 102] for n in lengths]


def eager(model: Any, sort: bool) -> Embed:
    """Padded batches in PyTorch: one, or several of texts of like length."""

    def embed_batch(texts: Texts) -> torch.Tensor:
        longest = max(map(len, texts))
        ids = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
        mask = torch.tensor([[1] * len(t) + [0] * (longest - len(t)) for t in texts])
        with torch.no_grad():
            hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1))

    def embed(texts: Texts) -> np.ndarray:
        if not sort:
            return embed_batch(texts).numpy()
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        result = torch.empty(len(texts), model.config.hidden_size)
        for first in range(0, len(order), SORTED_BATCH):
            batch = order[first : first + SORTED_BATCH]
            result[batch] = embed_batch([texts[i] for i in batch])
        return result.numpy()

    return embed


def sides_of(threads: int) -> dict[str, Embed]:
    """All sides by name; the first is the reference."""
    folder = minilm_dir()
    model = transformers.AutoModel.from_pretrained(folder).eval()
    sides: dict[str, Embed] = {"eager": eager(model, False), "eager, sorted": eager(model, True)}
    for quantize in (None, "int8", "8da4w"):
        program = rushlight.llm.export(folder, quantize=quantize, verify=False)
        runner = rushlight.llm.load(program.buffer, threads=threads)
        sides[f"rushlight {quantize or 'float32'}"] = runner.embed
    return sides


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--most", type=int, default=256, help="tokens of the longest text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    texts = texts_of(args.texts, args.most)
    tokens = sum(map(len, texts))
    sides = sides_of(args.threads)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    results = {}
    for turn in range(args.repeat + 1):
        for name, embed in sides.items():
            start = time.perf_counter(), time.process_time()
            results[name] = embed(texts)
            end = time.perf_counter(), time.process_time()
            if turn:  # the first one warms up
                times[name].append((end[0] - start[0], end[1] - start[1]))
    rows = []
    for name in sides:
        wall, processor = (statistics.median(column) for column in zip(*times[name], strict=True))
        distance = float(1 - (results[name] * results["eager"]).sum(1).min())
        rows.append({"side": name, "ms": wall * 1e3, "processor_ms": processor * 1e3,
                     "tokens_per_second": tokens / wall, "distance": distance})  # fmt: skip
    if args.json:
        print(json.dumps(rows))
        return
    table = Table("side", "ms", "processor ms", "tokens/s", "processor", "cosine distance")
    for row in rows:
        ratio = rows[0]["processor_ms"] / row["processor_ms"]
        table.add_row(row["side"], f"{row['ms']:.1f}", f"{row['processor_ms']:.1f}",
                      f"{row['tokens_per_second']:.0f}", f"{ratio:.2f}x of eager",
                      f"{row['distance']:.1e}")  # fmt: skip
    Console().print(table)
    print(f"{args.texts} texts, {tokens} tokens, {args.threads} thread(s)")


if __name__ == "__main__":
    main()
