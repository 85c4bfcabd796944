"""GGUF files here and in llama.cpp: how far logits are from those that they stand for.

Small models of each family are written to files, by the package `gguf` and by the quantizer of
llama.cpp. Distances are those from `transformers` in float32 with the dequantised weights, as a
share of the logits' norm, over a prompt that is computed at once and tokens that follow one by one.
Both sides have keys and values in float32, and llama.cpp's attention is not fused; the last column
is llama.cpp with its defaults. The model of characters is trained first.

  python -m benchmarks llm_gguf --models llama,gemma3
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import character_model
import engines
import environments
import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python" / "llm" / "exporter"))
sys.path.insert(0, str(ROOT / "tests" / "python" / "llm" / "gguf"))
sys.path.insert(0, str(ROOT / "tests" / "python" / "llm" / "tokenizer"))

import tokenizer_byte_level as byte_level  # noqa: E402
import tokenizer_corpus as corpus  # noqa: E402
import tokenizer_sentence_piece as sentence_piece  # noqa: E402
from gguf_files import (  # noqa: E402
    PRE_TOKENIZERS,
    byte_level_entries,
    of_tokenizer,
    sentence_piece_entries,
    take_weights,
    write_gguf,
)
from llm_models import Session, small_model  # noqa: E402

import rushlight.llm  # noqa: E402
from rushlight.peers.side import Side  # noqa: E402

SIDE = ROOT / "benchmarks" / "sides" / "llamacpp_side.py"
BY_GGUF = ("F16", "BF16", "Q8_0", "Q4_0")
BY_LLAMA_CPP = ("BF16", "Q8_0", "Q4_0", "Q4_K_S", "Q4_K_M", "Q5_K_M", "Q6_K")
PROMPT, FOLLOWING = 128, 32  # tokens
TRAINED = "characters"
_VOCABULARY = 1024

# Rows of whole blocks of 256.
_WIDE = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "head_dim": 32,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}
_GEMMA = {"query_pre_attn_scalar": _WIDE["head_dim"]}  # llama.cpp reads no other one
FAMILIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "llama": ("llama", {}, "mistral"),
    "llama3": ("llama3", {}, "llama3"),
    "mistral": ("mistral", {"sliding_window": None}, "tekken"),
    "qwen2": ("qwen2", {"head_dim": None, "use_sliding_window": False}, "qwen2"),
    "qwen3": ("qwen3", {}, "qwen2"),
    "gemma": ("gemma", {}, "gemma"),
    "gemma2": ("gemma2", _GEMMA, "gemma"),
    "gemma3": ("gemma3", {**_GEMMA, "num_hidden_layers": 6, "layer_types": None}, "gemma"),
    "phi3": ("phi3", {"head_dim": None, "sliding_window": None}, "llama2"),
    "gpt2": ("gpt2", {**dict.fromkeys(_WIDE), "n_embd": 256, "n_head": 8}, "gpt2"),
}
"""By family: a case of the tests, what differs from it, and the family of the tokenizer. Sliding
windows of Mistral and Phi-3 are left out, as by llama.cpp."""


@dataclass(frozen=True)
class Source:
    """A model and the metadata of its tokenizer.

    Attributes:
        model: of `transformers`; its weights are changed to those of each file.
        entries: metadata, as `write_gguf` takes them.
        tokens: of a text.
    """

    model: Any
    entries: dict[str, Any]
    tokens: list[int]


@dataclass(frozen=True)
class Distances:
    """Distances from `transformers` with the same weights.

    Attributes:
        ours: of our program, with keys and values in float32.
        theirs: of llama.cpp, likewise.
        default: of llama.cpp with its defaults.
    """

    ours: float
    theirs: float
    default: float


@cache
def tokenizer_of(family: str) -> dict[str, Any]:
    """The metadata of a small tokenizer of a family."""
    text = corpus.prose()[:100_000]
    if family in PRE_TOKENIZERS:
        peer = byte_level.train(family, _VOCABULARY, text)
        return byte_level_entries(peer, PRE_TOKENIZERS[family])
    user = sentence_piece.FAMILIES[family].get("user_defined_symbols", [])
    peer = sentence_piece.train(family, _VOCABULARY, text)
    return sentence_piece_entries(peer, user, has_prefix=family != "gemma")


def source_of(name: str, trained: Callable[[], Any]) -> Source:
    """A model of random weights, or the one that `trained` returns."""
    if name == TRAINED:
        entries = {
            "tokenizer__ggml__model": "none",
            "llama__vocab_size": character_model.CHARACTERS,
        }
        tokens = character_model.measured_text()[: PROMPT + FOLLOWING]
        return Source(trained(), entries, tokens)
    case, changes, family = FAMILIES[name]
    tokenizer = tokenizer_of(family)
    count = len(tokenizer["tokens"])
    model = small_model(case, **{**_WIDE, **changes, "vocab_size": count})
    tokens = torch.randint(0, count, (PROMPT + FOLLOWING,)).tolist()
    return Source(model, of_tokenizer(tokenizer), tokens)


@contextmanager
def llama_cpp() -> Iterator[Side]:
    """A process with llama.cpp.

    Raises:
        MissingError: its environment cannot be made.
    """
    with Side(environments.python_of("llamacpp"), SIDE) as side:
        yield side


def files(source: Source, folder: Path, side: Side) -> Iterator[tuple[str, str, Path]]:
    """Who wrote a file, its type, and the file, one after the other; `folder` is used for them."""
    exact, path = folder / "exact.gguf", folder / "model.gguf"
    write_gguf(source.model, exact, **source.entries)
    for kind in BY_LLAMA_CPP:
        side.call("quantize", source=str(exact), file=str(path), kind=kind)
        yield "llama.cpp", kind, path
    take_weights(source.model, exact)
    for kind in BY_GGUF:
        yield "gguf", kind, write_gguf(source.model, path, kind, **source.entries)
        take_weights(source.model, exact)


def distances(source: Source, path: Path, side: Side) -> Distances:
    """The distances of both sides for a file."""
    take_weights(source.model, path)
    tokens = torch.tensor(source.tokens)
    with torch.no_grad():
        wanted = source.model(tokens[None]).logits[0]

    def theirs(is_exact: bool) -> torch.Tensor:
        result = path.with_suffix(".npy")
        options = {"file": str(path), "result": str(result), "is_exact": is_exact}
        side.call("logits", tokens=source.tokens, prompt=PROMPT, **options)
        return torch.from_numpy(np.load(result))

    def of(got: torch.Tensor) -> float:
        return float((got - wanted).norm() / wanted.norm())

    return Distances(of(_ours(path, tokens)), of(theirs(True)), of(theirs(False)))


def _ours(path: Path, tokens: torch.Tensor) -> torch.Tensor:
    limits = {"context": len(tokens), "batch": PROMPT, "wanted": PROMPT}
    session = Session(rushlight.llm.export(path, **limits, verify=False))
    return torch.cat([session.give(part) for part in tokens.split([PROMPT, *[1] * FOLLOWING])])


def measured(
    name: str, trained: Callable[[], Any], say: Callable[[str], None] = lambda text: None
) -> dict[tuple[str, str], Distances]:
    """The distances of a model by who wrote the file and its type.

    Args:
        name: a key of `FAMILIES`, or `TRAINED`.
        trained: makes the trained model, which is changed.
        say: called with the name of each file.
    """
    errors = {}
    source = source_of(name, trained)
    with llama_cpp() as side, tempfile.TemporaryDirectory() as folder:
        for maker, kind, path in files(source, Path(folder), side):
            say(f"{name}: {kind} by {maker}")
            errors[maker, kind] = distances(source, path, side)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*FAMILIES, TRAINED]
    engines.add_names(parser, "--models", names, names, "models")
    parser.add_argument(
        "--iterations", type=int, default=character_model.ITERATIONS, help="of training"
    )
    arguments = parser.parse_args()
    heads = ["file", "ours", "llama.cpp", "ours / llama.cpp", "its defaults"]
    torch.manual_seed(0)
    trained = partial(character_model.train, arguments.iterations)
    for name in arguments.models:
        rows = []
        for (maker, kind), one in measured(name, trained, engines.say).items():
            cells = [f"{100 * error:.3f} %" for error in (one.ours, one.theirs, one.default)]
            cells.insert(2, f"{one.ours / one.theirs:.2f}x")
            rows.append([f"{kind} by {maker}", *cells])
        engines.table(f"{name}: distances of logits from the dequantised weights'", heads, rows)


if __name__ == "__main__":
    main()
